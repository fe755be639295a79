"""The dispatcher: posts deliveries of events to their endpoints (webhooks.md sections 3, 4 and 6).

Delivery is at least once. A process leases deliveries of one endpoint, posts each, and settles outcomes in
batches. One that dies in between leaves leases that run out; its deliveries are posted again, with the same
id and the same bytes, signed anew.

While a process holds deliveries of an endpoint no other process gets any of it. So first attempts start in
the order of their events, and the limit of attempts in flight holds over all processes.

What is held in memory is bounded, and an endpoint that does not answer gets one slot instead of ten; the
rest of its deliveries stay in the database.

Begin with `engine.py` and `scheduler.py`.
"""
