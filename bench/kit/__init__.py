"""What the measurements share: the server under test, its peers, load, results and the machine's facts."""
