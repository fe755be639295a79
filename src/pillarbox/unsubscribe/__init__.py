"""Links by which recipients leave a topic, or everything, and the page behind them.

Begin with `routes.py`, then read `choices.py` (what a submission changes). The links themselves are made in
`kernel/security/link_tokens.py`, and put into mail by `emails/copies.py`.
"""
