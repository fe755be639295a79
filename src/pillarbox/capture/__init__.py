"""Captured mail: what the route `capture` stores instead of sending it.

One row per email, with the recipients of all its groups; the raw message is in the row up to 256 KiB and
in the blob store beyond. A mail is stored in the transaction that settles its delivery, so an email that
shows `delivered` can be read here. The oldest mails go when `capture_limit` is passed.

The pages and their JSON belong to the operator of the machine, not to a team: they answer to loopback
alone, under names that are known, to whoever has the token of this start (`access.py`).

Begin with `store.py` (a mail is kept) and `routes.py` (the pages that show it).
"""
