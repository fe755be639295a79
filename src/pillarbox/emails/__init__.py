"""Emails: what the team sends.

`accept` is the entry point for outgoing mail: the API, batches, SMTP submission and drafts go through it. The
copies of broadcasts alone are stored elsewhere (`broadcast_copies/making.py`). An email is stored with its
recipients, its work items and its first timeline entry, or not at all. Its content never changes after that;
what became of it belongs to `timeline`.

States as the wire shows them (`last_event`): queued, scheduled, sent, delivery_delayed, delivered,
opened, clicked, bounced, complained, failed, suppressed, canceled. Only `scheduled` may be moved or
canceled by the caller.

Begin with `accept.py`, and `routes.py` for the rest of the API.
"""
