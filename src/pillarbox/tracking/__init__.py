"""Tracking: what recipients open and which links they follow (emails.md 8).

The links are put into mail by `emails.tracked_copies`, and their tokens are made in
`kernel.security.tracking_tokens`. Here they are answered. An event is committed before its answer; what has
become of the email is never in the way of the answer itself.

Begin with `routes.py` (a request at a link or picture) and `recording.py` (its event).
"""
