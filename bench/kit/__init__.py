"""What the measurements share: the server under test, its peers, load, figures and the machine's facts."""
