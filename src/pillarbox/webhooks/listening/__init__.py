"""Listeners: the temporary webhooks behind `pillarbox webhooks listen`, and subscriptions of the program.

A listener is a row of `webhooks` that no list shows and that is never called; its deliveries are never due.
Who opened it takes them out of the queue, so each event comes once, however late its transaction commits.
It is removed by its reader, or an hour after it was last read. A subscription (`subscriptions.py`) is one
that a part of the program reads and that stays.
"""
