"""SQL of codes and refresh tokens, which arrive without a team and are looked up by their hash."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from pillarbox.kernel.postgres.database import Connection, Source
from pillarbox.kernel.work.collectors import changed
from pillarbox.oauth.grant_queries import GrantRef


class StoredCode(NamedTuple):
    """A code, with what a request must have that exchanges it."""

    team_id: UUID
    grant_id: UUID
    client_id: str
    redirect_uri: str
    challenge: str
    expires_at: datetime
    failures: int
    used_at: datetime | None

    @property
    def ref(self) -> GrantRef:
        """Return which grant it is of."""
        return GrantRef(self.team_id, self.grant_id)


class StoredRefreshToken(NamedTuple):
    """A refresh token; `rotated_at` says when it was used."""

    team_id: UUID
    grant_id: UUID
    client_id: str
    expires_at: datetime
    rotated_at: datetime | None

    @property
    def ref(self) -> GrantRef:
        """Return which grant it is of."""
        return GrantRef(self.team_id, self.grant_id)


async def add_code(
    conn: Connection,
    hash_: bytes,
    ref: GrantRef,
    *,
    client_id: str,
    redirect_uri: str,
    challenge: str,
    now: datetime,
    expires_at: datetime,
) -> None:
    """Store the code of a grant."""
    await conn.execute(
        """
        INSERT INTO oauth_codes (hash, team_id, grant_id, client_id, redirect_uri, challenge, created_at,
                                 expires_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
        """,
        hash_,
        *ref,
        client_id,
        redirect_uri,
        challenge,
        now,
        expires_at,
    )


async def lock_code(conn: Connection, hash_: bytes) -> StoredCode | None:
    """Return a code; nobody else uses it before the transaction ends."""
    row = await conn.fetchrow(
        """
        SELECT team_id, grant_id, client_id, redirect_uri, challenge, expires_at, failures, used_at
          FROM oauth_codes
         WHERE hash = $1
           FOR UPDATE
        """,
        hash_,
    )
    return None if row is None else StoredCode(*row)


async def count_failure(conn: Connection, hash_: bytes) -> None:
    """Count one more request with this code that was not right."""
    await conn.execute(
        """
        UPDATE oauth_codes SET failures = failures + 1 WHERE hash = $1
        """,
        hash_,
    )


async def use_code(conn: Connection, hash_: bytes, now: datetime) -> None:
    """Note that the code is used."""
    await conn.execute(
        """
        UPDATE oauth_codes SET used_at = $2 WHERE hash = $1 AND used_at IS NULL
        """,
        hash_,
        now,
    )


async def add_refresh_token(
    conn: Connection, hash_: bytes, ref: GrantRef, client_id: str, now: datetime, expires_at: datetime
) -> None:
    """Store a refresh token of a grant."""
    await conn.execute(
        """
        INSERT INTO oauth_refresh_tokens (hash, team_id, grant_id, client_id, created_at, expires_at)
        VALUES ($1, $2, $3, $4, $5, $6)
        """,
        hash_,
        *ref,
        client_id,
        now,
        expires_at,
    )


async def lock_refresh_token(conn: Connection, hash_: bytes) -> StoredRefreshToken | None:
    """Return a refresh token; nobody else uses it before the transaction ends."""
    row = await conn.fetchrow(
        """
        SELECT team_id, grant_id, client_id, expires_at, rotated_at
          FROM oauth_refresh_tokens
         WHERE hash = $1
           FOR UPDATE
        """,
        hash_,
    )
    return None if row is None else StoredRefreshToken(*row)


async def find_refresh_token(source: Source, hash_: bytes) -> StoredRefreshToken | None:
    """Return a refresh token."""
    row = await source.fetchrow(
        """
        SELECT team_id, grant_id, client_id, expires_at, rotated_at
          FROM oauth_refresh_tokens
         WHERE hash = $1
        """,
        hash_,
    )
    return None if row is None else StoredRefreshToken(*row)


async def use_refresh_token(conn: Connection, hash_: bytes, now: datetime) -> None:
    """Note that the refresh token is used."""
    await conn.execute(
        """
        UPDATE oauth_refresh_tokens SET rotated_at = $2 WHERE hash = $1 AND rotated_at IS NULL
        """,
        hash_,
        now,
    )


async def mark_grant_used(conn: Connection, ref: GrantRef, now: datetime) -> None:
    """Note when the grant was used, at most once a minute (SEC-06)."""
    await conn.execute(
        """
        UPDATE oauth_grants
           SET last_used_at = $3
         WHERE team_id = $1 AND id = $2 AND (last_used_at IS NULL
                                         OR last_used_at < $3::timestamptz - interval '1 minute')
        """,
        *ref,
        now,
    )


async def remove_codes(source: Source, before: datetime, now: datetime, limit: int) -> int:
    """Remove up to `limit` codes that expired before an instant; return how many. One that was used stays
    while its grant has a refresh token that is good now."""
    return changed(
        await source.execute(
            """
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
            """,
            before,
            now,
            limit,
        )
    )


async def remove_refresh_tokens(source: Source, before: datetime, now: datetime, limit: int) -> int:
    """Remove up to `limit` refresh tokens that expired before an instant; return how many."""
    # One that was used is still told apart from an unknown one while its grant has a token that is good.
    return changed(
        await source.execute(
            """
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
            """,
            before,
            now,
            limit,
        )
    )
