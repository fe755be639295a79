"""Tracking: what recipients open and which links they follow (emails.md 8)."""
