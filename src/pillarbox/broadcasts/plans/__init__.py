"""Plans of broadcasts: slow sending and A/B tests (docs/decisions/0184).

A plan belongs to a draft. From the start on it has a stage, and some recipients have a wave: 1 is the
canary, 2 the rest of the test, none all others. A stage ends when nobody of its wave waits. Each move from
one stage to the next is one guarded update, made by the job that watches the broadcast.

Begin with `plan.py`, then `plan_start.py` and `stages.py`. `broadcasts/sending.py` says whose copies are made
next.
"""
