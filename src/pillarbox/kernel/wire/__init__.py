"""The common parts of bodies, queries and answers of every route (conventions.md).

Begin with `problems.py` (error answers), `fields.py` (body to struct) and `paging.py` (lists).
"""
