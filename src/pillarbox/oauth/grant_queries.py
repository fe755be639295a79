"""SQL of the grants. A grant is a row of its team, and is kept after it was revoked."""

from __future__ import annotations

from typing import Final

ADD: Final = """
    INSERT INTO oauth_grants (team_id, id, client_id, client, person_id, scopes, created_at)
    VALUES ($1, $2, $3, $4::json, $5, $6, $7)
"""

GET: Final = """
    SELECT team_id, id, client_id, client, person_id, scopes, created_at, last_used_at, revoked_at,
           revoked_reason
      FROM oauth_grants
     WHERE team_id = $1 AND id = $2
"""

LOCK_LIVE: Final = """
    SELECT team_id, id, client_id, client, person_id, scopes, created_at, last_used_at, revoked_at,
           revoked_reason
      FROM oauth_grants
     WHERE team_id = $1 AND id = $2 AND revoked_at IS NULL
       FOR UPDATE
"""

REVOKE: Final = """
    UPDATE oauth_grants
       SET revoked_at = $3, revoked_reason = $4
     WHERE team_id = $1 AND id = $2 AND revoked_at IS NULL
    RETURNING team_id, id
"""

REVOKE_OF_PERSON: Final = """
    UPDATE oauth_grants
       SET revoked_at = $3, revoked_reason = $4
     WHERE team_id = $1 AND person_id = $2 AND revoked_at IS NULL
    RETURNING team_id, id
"""

# In all teams: of a person who is disabled or removed.
REVOKE_OF_PERSON_EVERYWHERE: Final = """
    UPDATE oauth_grants
       SET revoked_at = $2, revoked_reason = $3
     WHERE person_id = $1 AND revoked_at IS NULL
    RETURNING team_id, id
"""

# In all teams: of a program that the operator has disabled.
REVOKE_OF_CLIENT: Final = """
    UPDATE oauth_grants
       SET revoked_at = $2, revoked_reason = $3
     WHERE client_id = $1 AND revoked_at IS NULL
    RETURNING team_id, id
"""

LIST: Final = """
    SELECT g.id, g.client_id, g.client->>'name' AS name, p.email, g.scopes, g.created_at, g.last_used_at,
           g.revoked_at, g.revoked_reason
      FROM oauth_grants g
      LEFT JOIN people p ON p.id = g.person_id
     WHERE g.team_id = $1
     ORDER BY g.id DESC
     LIMIT $2
"""
