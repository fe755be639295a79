"""The inboxes themselves: making, naming and deleting them (inboxes.md section 3).

Begin with `changes.py`. `removal.py` removes in the background what a deleted inbox has left behind.
"""
