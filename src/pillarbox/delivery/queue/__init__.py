"""The queue of work items: claims, limits, pausing, dropping, and what the operator sees of it.

Begin with `claims.py`.
"""
