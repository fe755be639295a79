"""Screens of the log of requests."""
