"""Screens of webhooks: the endpoints of a team, what was sent to them, and how they answered."""
