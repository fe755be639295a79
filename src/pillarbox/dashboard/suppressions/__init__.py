"""Screens of suppressed addresses: the list, and why an address is on it."""
