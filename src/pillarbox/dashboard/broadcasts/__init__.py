"""Screens of broadcasts: the list, a draft as steps, and what became of one that was sent.

Begin with `broadcast_list.py` and `broadcast_page.py`; a draft is drawn by `draft_steps.py`, anything else by
`report.py`.
"""
