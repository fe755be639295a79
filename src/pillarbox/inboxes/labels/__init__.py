"""The labels of an inbox (inboxes.md section 4)."""
