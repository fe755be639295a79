"""Contacts (contacts.md): the people a team writes to, by address.

A contact is subscribed or not; what it chose of topics is kept beside that and independent of it. A row of
`segment_members` or `topic_choices` belongs to a contact that exists: both are written while the row of the
contact is locked, and go with it. Values of properties are in the row, under the number of their definition
(docs/decisions/0060). Every change is told in its own transaction.

Begin with `store.py` (all changes and their events), `reading.py` (what is answered) and `wire.py` (what is
given).
"""
