"""Sign-up forms with double opt-in: people give their address, and are added when they click in a mail.

Begin with `submissions.py`, which takes what strangers send, and `confirming.py`, which adds them.
"""
