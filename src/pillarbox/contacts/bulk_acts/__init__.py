"""Acts on many contacts at once (contacts.md section 9): they are done by a job, batch by batch, and can be
stopped.

An act is `queued`, `in_progress`, and then `completed`, `stopped` or `failed`. It goes through its contacts
in the order of their ids; how far it is changes in the transaction that changes the contacts. So whoever
takes over goes on behind the last batch.
"""
