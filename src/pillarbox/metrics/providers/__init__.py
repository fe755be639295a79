"""Reputation of domains at mailbox providers, day by day (docs/decisions/0177).

`counting.py` sums up the history in the background, a slice of time after the other, and `names.py` says
which provider an MX host belongs to. A view reads the sums of a month, which are few, and no history.
"""
