"""The invariants between grants, the people who gave them, and what hangs on them."""

from __future__ import annotations

from pillarbox.kernel.postgres.invariant import Invariant

INVARIANTS: tuple[Invariant, ...] = (
    Invariant(
        "oauth_grant_half_revoked",
        "The grant {id} has a reason and no time at which it was revoked, or a time and no reason.",
        """
        SELECT g.team_id, g.id
          FROM oauth_grants g
         WHERE (g.revoked_at IS NULL) <> (g.revoked_reason IS NULL)
         LIMIT $1
        """,
    ),
    Invariant(
        "oauth_grant_of_no_member",
        "The grant {id} is live, and the person {person_id} who gave it is not in the team {team_id}.",
        """
        SELECT g.team_id, g.id, g.person_id
          FROM oauth_grants g
         WHERE g.revoked_at IS NULL
           AND NOT EXISTS (SELECT FROM team_members m
                            WHERE m.team_id = g.team_id AND m.person_id = g.person_id)
         LIMIT $1
        """,
    ),
    Invariant(
        "oauth_grant_of_disabled_client",
        "The grant {id} is live, and its program {client_id} is disabled.",
        """
        SELECT g.team_id, g.id, g.client_id
          FROM oauth_grants g
          JOIN oauth_clients c ON c.id::text = g.client_id
         WHERE g.revoked_at IS NULL AND c.disabled_at IS NOT NULL
         LIMIT $1
        """,
    ),
    Invariant(
        "oauth_token_without_grant",
        "There is a {kind} of the grant {id}, which is not there.",
        """
        SELECT t.team_id, t.grant_id AS id, t.kind
          FROM (SELECT DISTINCT team_id, grant_id, 'refresh token' AS kind FROM oauth_refresh_tokens
                 UNION SELECT team_id, grant_id, 'code' FROM oauth_codes) AS t
         WHERE NOT EXISTS (SELECT FROM oauth_grants g
                            WHERE g.team_id = t.team_id AND g.id = t.grant_id)
         LIMIT $1
        """,
    ),
    Invariant(
        "oauth_several_refresh_tokens",
        "The grant {id} has {tokens} refresh tokens that may be used; each use makes one of one.",
        """
        SELECT r.team_id, r.grant_id AS id, count(*) AS tokens
          FROM oauth_refresh_tokens r
         WHERE r.rotated_at IS NULL
         GROUP BY r.team_id, r.grant_id
        HAVING count(*) > 1
         LIMIT $1
        """,
    ),
)
