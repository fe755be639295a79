"""Checks that the rows of emails fit together (`pillarbox verify`).

Begin with `invariants.py` and `reconcile.py`.
"""
