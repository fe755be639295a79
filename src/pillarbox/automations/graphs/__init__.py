"""Graphs of automations (automations.md 2 and 3): values in, values out, without a database.

Begin with `graph.py`, the types. `parsing.py` makes a graph of what a request or a row has, and `normal.py`
shows it again. `evaluation.py` finds values and decides rules. `progress.py` says which steps follow, and
which cannot be reached any more.
"""
