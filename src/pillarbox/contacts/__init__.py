"""Contacts: the people a team writes to, by address."""
