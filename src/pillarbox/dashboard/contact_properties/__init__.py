"""Screens of contact properties: the list, and one property with its fallback."""
