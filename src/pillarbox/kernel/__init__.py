"""The parts that all slices use: HTTP, PostgreSQL, processes, settings, jobs, storage, network, logs.

Nothing in here imports a slice. Begin with `http/pipeline.py` (a request), `postgres/database.py` (the
database) and `work/jobs.py` (background work).
"""
