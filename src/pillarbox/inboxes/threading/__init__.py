"""How a message comes into a thread (inboxes.md sections 8 and 9): the only way in, for mail that was
received and mail that is sent.

Begin with `join.py`. `new_messages` are the values that go in, `thread_plan` is pure, `queries` is its SQL.
"""
