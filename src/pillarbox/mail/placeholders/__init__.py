"""Placeholders in the parts of mail (templates.md 5 and 6): found, given values, rendered."""
