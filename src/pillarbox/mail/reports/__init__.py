"""Reports that come back: SMTP replies classified, bounces (DSN), complaints (ARF), VERP addresses.

Begin with `replies.py` (the table of verdicts) and `dsn.py`.
"""
