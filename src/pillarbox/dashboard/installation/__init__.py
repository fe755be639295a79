"""Screens of the whole installation, for its operators. Begin with `glance.py`."""
