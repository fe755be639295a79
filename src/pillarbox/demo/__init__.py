"""A team with a month of mail of a small shop, for people who look around (`pillarbox demo`).

Begin with `making.py`: how a demo is made. The month happens in a database of its own
(`simulation_database.py`), in one process with a clock that begins thirty days ago (`simulation_clock.py`)
and without a network (`network_simulation.py`). `month.py` goes through it; `set_up.py`, `orders.py`,
`broadcasts.py` and `inbox_mail.py` say what happens, with the texts of `shop.py`, `mail_texts.py` and
`inbox_texts.py`. At the end the rows of the team are copied into the installation in one transaction.
`removal.py` takes them away.
"""
