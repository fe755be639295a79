"""What commands are made of: reaching the database, answering, loading a command when it is called.

Begin with `connect.py` (the database) and `answers.py` (what a command prints).
"""
