"""Proving by more than a password who one is: codes of a phone, recovery codes, passkeys.

Whatever proves something does so once: a code, a challenge and the answer to it are taken by one statement of
the database each, so of two that arrive together one counts. Record: docs/decisions/0106.

Begin with `factor_logins.py` (logging in), then `second_factor.py` and `passkeys.py`.
"""
