"""SQL of registered programs. They belong to no team."""

from __future__ import annotations

from typing import Final

USABLE: Final = """
    SELECT id, name, redirect_uris, grant_types, token_endpoint_auth_method, scopes, client_uri, logo_uri,
           is_verified OR is_built_in AS is_verified, secret_hash
      FROM oauth_clients
     WHERE id = $1 AND disabled_at IS NULL
"""

ADD: Final = """
    INSERT INTO oauth_clients (id, name, redirect_uris, grant_types, token_endpoint_auth_method, scopes,
                               client_uri, logo_uri, secret_hash, created_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
"""

GRANTED: Final = """
    UPDATE oauth_clients SET granted_at = $2 WHERE id = $1 AND granted_at IS NULL
"""

LIST: Final = """
    SELECT id, name, redirect_uris, token_endpoint_auth_method, scopes, is_built_in, is_verified, disabled_at,
           created_at, granted_at
      FROM oauth_clients
     ORDER BY created_at DESC, id
     LIMIT $1
"""

# Those that a document describes have no row: what is known of them stands with their grants.
LIST_DESCRIBED: Final = """
    SELECT client_id, count(*) AS grants, count(*) FILTER (WHERE revoked_at IS NULL) AS live,
           max(created_at) AS last_at
      FROM oauth_grants
     WHERE client_id LIKE 'https://%'
     GROUP BY client_id
     ORDER BY last_at DESC
     LIMIT $1
"""

VERIFY: Final = """
    UPDATE oauth_clients SET is_verified = $2 WHERE id = $1
"""

DISABLE: Final = """
    UPDATE oauth_clients SET disabled_at = $2 WHERE id = $1 AND disabled_at IS NULL
"""

ENABLE: Final = """
    UPDATE oauth_clients SET disabled_at = NULL WHERE id = $1 AND disabled_at IS NOT NULL
"""

EXISTS: Final = """
    SELECT EXISTS (SELECT FROM oauth_clients WHERE id = $1)
"""

# Whoever is asked about one just now keeps it; whoever was allowed to act has set `granted_at`.
REMOVE_UNUSED: Final = """
    WITH old AS MATERIALIZED (
        SELECT id
          FROM oauth_clients
         WHERE granted_at IS NULL AND NOT is_built_in AND created_at < $1
         ORDER BY created_at
         LIMIT $2
           FOR UPDATE SKIP LOCKED
    )
    DELETE FROM oauth_clients c
     USING old
     WHERE c.id = old.id AND c.granted_at IS NULL
"""
