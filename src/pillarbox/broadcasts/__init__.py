"""Broadcasts: one mail to all contacts of a segment, each exactly once (broadcasts.md).

A broadcast is in one of the states of `statuses.py`. When it starts, one statement writes a row for each
contact that gets it; from then on its content is frozen, and nobody is added. It is `sent` when no row waits
any more.

Begin with `statuses.py`, then `store.py` for what requests do and `start.py` for how sending begins.
"""
