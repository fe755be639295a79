"""Pillarbox, a self-hosted email platform."""

__version__ = "0.1.0"
