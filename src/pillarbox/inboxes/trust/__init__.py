"""Trust: the level of a message that came into an inbox, and its reasons (inboxes.md 6.6).

Begin with `evaluation.py`. Trust is found out once, when the message comes, and stored in its transaction.
`message_facts.py` reads the message alone, `known_senders.py` asks for all that the team knows of its sender.
Why so: docs/decisions/0193. Only that module, `queries.py` and `routes.py` are not pure.
"""
