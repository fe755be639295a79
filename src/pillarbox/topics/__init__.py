"""Topics (topics.md): kinds of mail that contacts choose to get or not to get.

A topic is live, then deleted, then gone. Only a live one is shown, and may be named. A deleted one still
says who must not get the mail that was accepted for it, with what contacts had chosen; when no such mail is
open any more, its row and the choices go. The default of a topic never changes.

Begin with `changes.py` (the transitions, with their events) and `subscriptions.py` (who gets mail of one).
"""
