"""What all slices use and no slice owns: HTTP, PostgreSQL, processes, settings, jobs, storage, network, logs.

Nothing in here imports a slice. Begin with `http/pipeline.py` (a request), `postgres/database.py` (the
database) and `work/jobs.py` (background work).
"""
