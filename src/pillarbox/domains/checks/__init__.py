"""Checks of a domain: one inspection of DNS, what follows from it, and when the next is due.

Begin with `jobs.py` and `outcome.py`.
"""
