"""Screens of metrics: any metric over any time, by domain or broadcast, and as a file."""
