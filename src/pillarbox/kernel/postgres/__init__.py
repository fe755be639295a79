"""The database: pool, embedded server, migrations, group commit, NOTIFY.

Begin with `database.py` (`TeamDb`, `transaction`) and `group_commit.py`.
"""
