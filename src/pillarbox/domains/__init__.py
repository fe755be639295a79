"""Domains (domains.md). Each team that holds a name has a row of its own for it; at most one team owns it.

A domain has the capabilities sending and receiving, at least one of them enabled. The status that is
shown is computed from the states of its records (`status.py`) and nothing else. Whether it may send or
receive is kept apart from it (`sending_ok`, `receiving_ok`), so a new check of a working domain never
interrupts mail. Every domain has its DKIM key from the start; the private half is sealed.

Begin with `create.py` (adding a domain), `checks/jobs.py` (looking for its records) and `senders.py` (what
sending asks of it).
"""
