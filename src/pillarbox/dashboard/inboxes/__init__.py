"""The mail client: inboxes, their threads, the messages of a thread, and drafts.

Begin with `thread_list.py`. `inbox_frame.py` has what stands beside every list of an inbox.
"""
