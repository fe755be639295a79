"""What is known about a message that came into an inbox (inboxes.md 6.6, docs/decisions/0193).

It is found out once, when the message comes, and stored in the transaction that stores the message.
`message_signs.py` reads the message alone. `known_senders.py` asks what the team knows of its sender,
`judgement.py` makes a level and reasons of both. All but `known_senders.py`, `queries.py` and `routes.py`
is pure.
"""
