"""Broadcasts: one mail to all contacts of a segment, each exactly once (broadcasts.md)."""
