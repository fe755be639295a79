"""Executing runs (docs/decisions/0114): what events start, what steps do, and what they lead to.

What a step does and all that follows from it is one transaction, under the lock of its run. Begin with
`walks.py`, which is a run's way through its graph without a database; `state.py` reads and writes it,
`engine.py` claims what is due, and `timers.py`, `mail.py` and `changes.py` carry out the steps.
"""
