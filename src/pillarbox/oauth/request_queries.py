"""SQL of authorizations that somebody has still to decide about, and of deciding. The team is chosen with the
decision."""

from __future__ import annotations

from typing import Final

ADD: Final = """
    INSERT INTO oauth_requests (hash, browser_hash, client_id, client, redirect_uri, scopes, state, challenge,
                                created_at, expires_at)
    VALUES ($1, $2, $3, $4::json, $5, $6, $7, $8, $9, $10)
"""

OPEN: Final = """
    SELECT client_id, client, redirect_uri, scopes, state, challenge
      FROM oauth_requests
     WHERE hash = $1 AND browser_hash = $2 AND decided_at IS NULL AND expires_at > $3
"""

DECIDE: Final = """
    UPDATE oauth_requests
       SET decided_at = $3
     WHERE hash = $1 AND browser_hash = $2 AND decided_at IS NULL AND expires_at > $3
    RETURNING client_id, client, redirect_uri, scopes, state, challenge
"""

REMOVE: Final = """
    DELETE FROM oauth_requests
     WHERE hash IN (SELECT hash FROM oauth_requests WHERE expires_at < $1 ORDER BY expires_at LIMIT $2)
"""

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
