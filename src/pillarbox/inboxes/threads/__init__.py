"""Threads: what lists show of them, what moves and marks them, and their messages (inboxes.md 5 and 6).

Begin with `changes.py`. A thread is in exactly one folder, has at least one message, and is read when all of
its messages are. Whoever changes one holds the lock of its inbox; a label of a thread stands in lists where
its thread stands.
"""
