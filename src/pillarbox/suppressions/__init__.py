"""Suppressions: addresses that the team must not write to.

One entry per team and address; the first cause stays. `address` is the compared form: the whole
address in lower case with its domain as A-label. Begin with `changes.py`: how entries come and go.
"""
