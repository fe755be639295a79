"""What must always hold between the rows of emails (`pillarbox verify`).

Begin with `invariants.py` and `reconcile.py`.
"""
