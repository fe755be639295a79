"""Inboxes: mail that is read, sorted into threads and answered, by people and by programs (inboxes.md)."""
