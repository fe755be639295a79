"""SQL of deciding about a request of a program."""

from __future__ import annotations

from typing import Final

# All teams of one person.
TEAMS: Final = """
    SELECT m.team_id, t.name, m.role
      FROM team_members m
      JOIN teams t ON t.id = m.team_id
     WHERE m.person_id = $1
     ORDER BY lower(t.name), m.team_id
"""

# Whoever removes the member waits, and then finds the grant.
HOLD_MEMBER: Final = """
    SELECT role
      FROM team_members
     WHERE team_id = $1 AND person_id = $2
       FOR UPDATE
"""

# The same for whoever disables the program.
HOLD_CLIENT: Final = """
    SELECT id FROM oauth_clients WHERE id = $1 AND disabled_at IS NULL FOR UPDATE
"""
