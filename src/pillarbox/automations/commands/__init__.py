"""`pillarbox automations`: `automations.py` has the commands, `simulate.py` the one that simulates a run."""
