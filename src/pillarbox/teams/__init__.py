"""Teams: who owns everything else. A team is `active`, `blocked` for abuse by the operator (its keys
answer 451) or `disabled` (its keys are not active). A team's number is its short name where space is
scarce and never changes. Members are the people whose own addresses the sandbox sender may reach.

Begin with `bootstrap.py` (making teams).
"""
