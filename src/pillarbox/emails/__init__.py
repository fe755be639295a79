"""Emails: what the team sends.

`accept` is the only entry point for outgoing mail: the API, batches, SMTP submission, drafts and broadcasts
go through it and there is no second copy of its rules. An email is stored with its recipients, its work
items and its first timeline entry, or not at all. Its content never changes after that; what became of it
belongs to `timeline`.

States as the wire shows them (`last_event`): queued, scheduled, sent, delivery_delayed, delivered,
opened, clicked, bounced, complained, failed, suppressed, canceled. Only `scheduled` may be moved or
canceled by the caller.

Begin with `accept.py`, and `routes.py` for the rest of the API.
"""
