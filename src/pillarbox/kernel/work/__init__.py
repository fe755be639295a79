"""Background work: jobs as rows with leases, periodic jobs, collectors of old rows.

Begin with `jobs.py`.
"""
