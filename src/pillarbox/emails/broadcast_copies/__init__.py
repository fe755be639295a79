"""Copies of broadcasts: emails that share their content (docs/decisions/0076).

`parts.py` has what they share, `personal.py` what each has of its own, `making.py` stores them and loads them
for the engine, `reading.py` shows them.
"""
