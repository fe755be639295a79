"""Runs as they are shown (automations.md 4, routes 8 and 9)."""
