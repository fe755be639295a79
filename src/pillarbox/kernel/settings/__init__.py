"""The settings: one table from which flags, environment, checks and the guide are made.

Begin with `table.py`; `settings.py` has the values.
"""
