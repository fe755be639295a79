"""Sent emails as messages (docs/decisions/0177): the one that was kept, else one that is composed once more.

Nothing that is sent is kept as it left, except with the route `capture`. A message that is composed once more
has no DKIM signature, because it may be one that was refused. It has no links of its recipient, because
readers of a mail may not unsubscribe for them. Begin with `messages.py`.
"""
