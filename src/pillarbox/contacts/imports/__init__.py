"""Imports of contacts from CSV files: `queued` → `in_progress` → `completed` or `failed`.

A file is stored before its import is answered, and read by a process of its own (`reader_process`), batch by
batch. Each batch is one transaction that holds its contacts, their memberships and choices, the counts and
the place in the file: so every row is applied and counted once, whatever dies meanwhile.

While mail is accepted an import is slower (`speed`).

Begin with `routes.py` for the way in, and with `jobs.py` for what becomes of a file. `dialect.py`,
`columns.py`, `cells.py` and `batches.py` say how a file is read; they need no database.
"""
