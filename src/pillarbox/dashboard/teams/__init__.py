"""Pages about the team that somebody looks at: its members, invitations, API keys and log of acts.

Begin with `current_team.py` (what these pages have in common).
"""
