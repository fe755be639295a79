"""Screens of contacts: the table with its filters, acts on many of them, a new contact."""
