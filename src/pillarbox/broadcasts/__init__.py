"""Broadcasts: one mail to all contacts of a segment, one email for each (broadcasts.md).

The email of a contact is made exactly once. A server may be offered it twice where a process dies at its
final dot.

A broadcast is in one of the states of `statuses.py`. When it starts, one statement writes a row for each
contact that gets it; from then on its content is frozen, and nobody is added. It is `sent` when no row waits
any more.

Begin with `statuses.py`, then `store.py` for what requests do and `start.py` for how sending begins.
`copying.py` makes emails of the rows, when `delivery/copy_window.py` requests them; `watch.py` says when the
broadcast is sent or paused.
"""
