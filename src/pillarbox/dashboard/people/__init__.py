"""Pages on which people set up their account, log in, and prove again who they are.

Begin with `page_visits.py` (what every page of people has in common).
"""
