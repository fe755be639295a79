"""Membership of teams: members with their roles, invitations, and the API keys that members make.

Begin with `members.py` (changes, and who acts) and `callers.py` (the same for callers of the API).
"""
