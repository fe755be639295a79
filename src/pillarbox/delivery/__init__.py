"""The delivery engine: sends emails and records the outcome of every recipient.

A work item is one email to one group of recipients (one destination domain). It is a row of
`deliveries` while it is live and is deleted when every recipient of the group has a final state.

    free    owner is null; claimable once `due_at` has come
    leased  owner is a process, `leased_until` in the future; in that process's memory
    gone    settled: the recipients have the outcome

What must always hold: an item is sent by the process that holds its lease; the lease is checked
right before the final dot; a final outcome is a fact and is taken even after the lease has passed; a
retry decision counts only with the current `attempt`; a connection offers its next final dot only when
its previous outcome is committed.

Begin with `engine.py` (which items are worked on) and `attempts.py` (one attempt).
"""
