"""Drafts: messages of an inbox that are not sent yet (inboxes.md section 7).

Begin with `changes.py`, and `send.py` for what sends one. A draft is unsent until it has the id of the email
that was made of it; then nothing changes it any more. An inbox and a thread count their unsent drafts, and
an email has at most one unsent draft that answers it. Each change makes a new `version`: what was decided by
an older one is refused. Whoever changes a draft holds the lock of its inbox.
"""
