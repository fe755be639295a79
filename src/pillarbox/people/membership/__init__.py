"""Who belongs to a team: members with their roles, invitations, and the API keys that members make."""
