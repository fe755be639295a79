"""What bodies, queries and answers of every route have in common (conventions.md).

Begin with `problems.py` (error answers), `fields.py` (body to struct) and `paging.py` (lists).
"""
