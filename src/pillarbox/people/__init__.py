"""People: who logs in, what they may do in which team, and who did what.

A person is of no team: `team_members` says to which teams it belongs, in which role. What needs a browser is
pages; routes of the API ignore cookies. Records: docs/decisions/0106.

Begin with `sessions.py` (who is logged in), `roles.py` (what members may do) and `factors/second_factor.py`
(proving by more than a password who one is).
"""
