"""The address that somebody logs in with, and how it becomes another one (docs/decisions/0106).

A person has one change under way at most. It is done when the link that was mailed to the new address is
used by the same person, logged in. Begin with `own_address.py`.
"""
