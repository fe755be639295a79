"""Links by which recipients leave a topic, or everything, and the page behind them.

The links themselves are made in `kernel.security.link_tokens`, and put into mail by `emails.copies`.

Begin with `routes.py` (a request at a link) and `choices.py` (what a submission changes).
"""
