"""The policy of an inbox: who may write to it, and what may be sent from it by whom (inboxes.md 3.7).

Begin with `rules.py`, which is pure and says what a policy means. `sending.py` applies it to mail whose From
is the inbox's, in `emails.accept`, so it holds for every way by which mail is accepted. `senders.py` says of
mail that comes in whether its sender is blocked. A policy that was never set allows everything.
"""
