"""Sends mail from an inbox: replies and forwards, each to its recipients (inboxes.md 6.2 and 6.3).

Begin with `send.py`. Everything goes through `emails.accept`; the message joins its thread in the same
transaction. `recipients`, `references`, `subjects`, `forwarded` and `header_rules` are pure.
"""
