"""Screens of emails, sent and received."""
