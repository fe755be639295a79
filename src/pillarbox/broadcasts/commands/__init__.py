"""`pillarbox broadcasts`: `broadcasts.py` has the commands, `following.py` the line that shows how far one
is."""
