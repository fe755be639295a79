"""Contact properties (contacts.md 4): what a team keeps about its contacts besides their names.

A definition is live or deleted. A deleted one is invisible; its number is not given again before its values
are gone from all contacts (docs/decisions/0060).

Begin with `definitions.py` (values that are to be kept), `defining.py` (making, changing and deleting) and
`removal.py` (the job behind a deletion).
"""
