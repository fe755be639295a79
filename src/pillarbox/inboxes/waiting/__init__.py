"""Waiting for a list of threads to change (extension `wait` of inboxes.md 5.1).

Begin with `waiters.py`. A request that waits holds no database connection. Whoever changes an inbox says so
after the commit (`changes.py`), which wakes the requests for this inbox in every process, and they read their
page again.
"""
