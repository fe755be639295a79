"""SMTP on both sides, and where mail for a domain goes.

Begin with `client.py` (sending) and `session.py` (one session of the server).
"""
