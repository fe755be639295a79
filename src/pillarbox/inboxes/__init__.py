"""Inboxes: mail that is read, sorted into threads and answered, by people and by programs (inboxes.md).

Begin with `paths.py`, which says what inbox a request is about, and `locking.py`, whose lock every change
takes.
"""
