"""The parts of commands: reaching the database, printing answers, loading a command when it is called.

Begin with `connect.py` (the database) and `answers.py` (what a command prints).
"""
