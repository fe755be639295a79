"""The account's numbers: any range, any zone, exact, from rollups (metrics.md, architecture 2.11).

`timeline` writes and folds the counts; this slice only reads. `question` understands a request, `periods`
cuts its range, `cover` picks the rollups, `read` sums them up, `definitions` names and rates them.

Begin with `routes.py` and `read.py`.
"""
