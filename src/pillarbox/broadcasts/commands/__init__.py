"""`pillarbox broadcasts`: `broadcasts.py` has the commands, `progress.py` the line that shows how far one
is."""
