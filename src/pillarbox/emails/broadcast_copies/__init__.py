"""Copies of broadcasts: emails that share their content (docs/decisions/0076).

Begin with `making.py`, which stores copies. `parts.py` has what they share, `personal.py` what each has of
its own. `loading.py` loads them for the engine, `reading.py` shows them.
"""
