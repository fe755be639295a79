"""Screens of emails, sent and received. Begin with `email_list.py`, the sent ones."""
