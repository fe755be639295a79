"""Events that teams send (events.md): something happened to one of their contacts.

A definition says what the payload of an event of its name may hold; an event needs none. An event that was
accepted waits in a partition until it is distributed: whoever listens is told of it in the transaction that
removes it. Events of one contact are in one partition, and told in the order of acceptance.

Begin with `sending.py` (what is accepted) and `distribution.py` (what becomes of it, and who listens).
"""
