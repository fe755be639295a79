"""Received mail on its way into inboxes (inboxes.md section 9).

Begin with `inbox_commits.py`. `message_fields` says what an inbox keeps of a message, `inbox_addresses` which
addresses may be those of an inbox; both are pure.
"""
