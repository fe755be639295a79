"""Plumbing that knows no resource: nothing in here may import a slice."""
