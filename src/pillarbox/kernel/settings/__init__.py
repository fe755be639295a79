"""The settings: rows from which flags, environment, checks and the guide are made.

Begin with `setting.py`, a row; `table.py` has those of the kernel, and each slice keeps its own in its
`settings.py`. `settings.py` here has the values.
"""
