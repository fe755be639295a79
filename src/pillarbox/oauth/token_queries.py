"""SQL of codes and refresh tokens, which arrive without a team and are looked up by their hash."""

from __future__ import annotations

from typing import Final

ADD_CODE: Final = """
    INSERT INTO oauth_codes (hash, team_id, grant_id, client_id, redirect_uri, challenge, created_at,
                             expires_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
"""

LOCK_CODE: Final = """
    SELECT team_id, grant_id, client_id, redirect_uri, challenge, expires_at, failures, used_at
      FROM oauth_codes
     WHERE hash = $1
       FOR UPDATE
"""

COUNT_FAILURE: Final = """
    UPDATE oauth_codes SET failures = failures + 1 WHERE hash = $1
"""

USE_CODE: Final = """
    UPDATE oauth_codes SET used_at = $2 WHERE hash = $1 AND used_at IS NULL
"""

ADD_REFRESH: Final = """
    INSERT INTO oauth_refresh_tokens (hash, team_id, grant_id, client_id, created_at, expires_at)
    VALUES ($1, $2, $3, $4, $5, $6)
"""

LOCK_REFRESH: Final = """
    SELECT team_id, grant_id, client_id, expires_at, rotated_at
      FROM oauth_refresh_tokens
     WHERE hash = $1
       FOR UPDATE
"""

FIND_REFRESH: Final = """
    SELECT team_id, grant_id, client_id, expires_at, rotated_at
      FROM oauth_refresh_tokens
     WHERE hash = $1
"""

ROTATE: Final = """
    UPDATE oauth_refresh_tokens SET rotated_at = $2 WHERE hash = $1 AND rotated_at IS NULL
"""

# At most once a minute (SEC-06).
GRANT_USED: Final = """
    UPDATE oauth_grants
       SET last_used_at = $3
     WHERE team_id = $1 AND id = $2 AND (last_used_at IS NULL
                                     OR last_used_at < $3::timestamptz - interval '1 minute')
"""

REMOVE_CODES: Final = """
    WITH old AS MATERIALIZED (
        SELECT hash
          FROM oauth_codes c
         WHERE c.expires_at < $1
           AND (c.used_at IS NULL
                OR NOT EXISTS (SELECT FROM oauth_refresh_tokens t
                                WHERE t.team_id = c.team_id AND t.grant_id = c.grant_id
                                  AND t.expires_at >= $2))
         LIMIT $3
           FOR UPDATE SKIP LOCKED
    )
    DELETE FROM oauth_codes c
     USING old
     WHERE c.hash = old.hash
"""

# One that was used is still told apart from an unknown one while its grant has a token that is good.
REMOVE_REFRESH_TOKENS: Final = """
    WITH old AS MATERIALIZED (
        SELECT hash
          FROM oauth_refresh_tokens o
         WHERE o.expires_at < $1
           AND NOT EXISTS (SELECT FROM oauth_refresh_tokens t
                            WHERE t.team_id = o.team_id AND t.grant_id = o.grant_id AND t.expires_at >= $2)
         LIMIT $3
           FOR UPDATE SKIP LOCKED
    )
    DELETE FROM oauth_refresh_tokens o
     USING old
     WHERE o.hash = old.hash
"""
