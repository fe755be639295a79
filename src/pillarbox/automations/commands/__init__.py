"""`pillarbox automations`: `automations.py` has the commands."""
