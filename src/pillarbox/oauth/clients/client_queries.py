"""SQL of registered programs. They belong to no team."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from pillarbox.kernel.postgres.database import Connection, Source
from pillarbox.kernel.work.collectors import changed


class UsableClient(NamedTuple):
    """A program that is not disabled."""

    id: UUID
    name: str
    redirect_uris: Sequence[str]
    grant_types: Sequence[str]
    token_endpoint_auth_method: str
    scopes: Sequence[str]
    client_uri: str | None
    logo_uri: str | None
    is_verified: bool
    secret_hash: bytes | None


class ClientRow(NamedTuple):
    """A program that is to be stored."""

    id: UUID
    name: str
    redirect_uris: Sequence[str]
    grant_types: Sequence[str]
    token_endpoint_auth_method: str
    scopes: Sequence[str]
    client_uri: str | None
    logo_uri: str | None
    secret_hash: bytes | None
    created_at: datetime


class ListedClient(NamedTuple):
    """A program in the operator's list."""

    id: UUID
    name: str
    redirect_uris: Sequence[str]
    token_endpoint_auth_method: str
    scopes: Sequence[str]
    is_built_in: bool
    is_verified: bool
    disabled_at: datetime | None
    created_at: datetime
    granted_at: datetime | None


class DescribedClientGrants(NamedTuple):
    """The grants of a program that a document describes: it has no row of its own."""

    client_id: str
    grants: int
    live: int
    last_at: datetime


async def usable(source: Source, row_id: UUID) -> UsableClient | None:
    """Return the program, unless it is disabled."""
    row = await source.fetchrow(
        """
        SELECT id, name, redirect_uris, grant_types, token_endpoint_auth_method, scopes, client_uri, logo_uri,
               is_verified OR is_built_in AS is_verified, secret_hash
          FROM oauth_clients
         WHERE id = $1 AND disabled_at IS NULL
        """,
        row_id,
    )
    return None if row is None else UsableClient(*row)


async def lock_usable(conn: Connection, row_id: UUID) -> bool:
    """Tell whether the program is not disabled; nobody disables it before the transaction ends."""
    locked = await conn.fetchval(
        """
        SELECT id FROM oauth_clients WHERE id = $1 AND disabled_at IS NULL FOR UPDATE
        """,
        row_id,
    )
    return locked is not None


async def add(source: Source, client: ClientRow) -> None:
    """Store a program."""
    await source.execute(
        """
        INSERT INTO oauth_clients (id, name, redirect_uris, grant_types, token_endpoint_auth_method, scopes,
                                   client_uri, logo_uri, secret_hash, created_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
        """,
        *client,
    )


async def mark_granted(conn: Connection, row_id: UUID, now: datetime) -> None:
    """Note when somebody first let the program act."""
    await conn.execute(
        """
        UPDATE oauth_clients SET granted_at = $2 WHERE id = $1 AND granted_at IS NULL
        """,
        row_id,
        now,
    )


async def listed(source: Source, limit: int) -> list[ListedClient]:
    """Return programs, the newest first."""
    rows = await source.fetch(
        """
    SELECT id, name, redirect_uris, token_endpoint_auth_method, scopes, is_built_in, is_verified, disabled_at,
           created_at, granted_at
      FROM oauth_clients
     ORDER BY created_at DESC, id
     LIMIT $1
        """,
        limit,
    )
    return [ListedClient(*row) for row in rows]


async def described(source: Source, limit: int) -> list[DescribedClientGrants]:
    """Return the programs that documents describe, as far as they have grants, the last granted first."""
    rows = await source.fetch(
        """
        SELECT client_id, count(*) AS grants, count(*) FILTER (WHERE revoked_at IS NULL) AS live,
               max(created_at) AS last_at
          FROM oauth_grants
         WHERE client_id LIKE 'https://%'
         GROUP BY client_id
         ORDER BY last_at DESC
         LIMIT $1
        """,
        limit,
    )
    return [DescribedClientGrants(*row) for row in rows]


async def set_verified(conn: Connection, row_id: UUID, *, is_verified: bool) -> bool:
    """Mark the program or take the mark away; False where there is none."""
    return (
        changed(
            await conn.execute(
                """
                UPDATE oauth_clients SET is_verified = $2 WHERE id = $1
                """,
                row_id,
                is_verified,
            )
        )
        > 0
    )


async def disable(conn: Connection, row_id: UUID, now: datetime) -> bool:
    """Disable the program; False where it is disabled already, or there is none."""
    return (
        changed(
            await conn.execute(
                """
                UPDATE oauth_clients SET disabled_at = $2 WHERE id = $1 AND disabled_at IS NULL
                """,
                row_id,
                now,
            )
        )
        > 0
    )


async def enable(conn: Connection, row_id: UUID) -> bool:
    """Enable the program again; False where it is not disabled, or there is none."""
    return (
        changed(
            await conn.execute(
                """
                UPDATE oauth_clients SET disabled_at = NULL WHERE id = $1 AND disabled_at IS NOT NULL
                """,
                row_id,
            )
        )
        > 0
    )


async def exists(source: Source, row_id: UUID) -> bool:
    """Tell whether there is such a program."""
    found: bool = await source.fetchval(
        """
        SELECT EXISTS (SELECT FROM oauth_clients WHERE id = $1)
        """,
        row_id,
    )
    return found


async def remove_unused(source: Source, before: datetime, limit: int) -> int:
    """Remove up to `limit` programs from before an instant that nobody let act; return how many."""
    # Whoever is asked about one just now keeps it; whoever was allowed to act has set `granted_at`.
    return changed(
        await source.execute(
            """
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
            """,
            before,
            limit,
        )
    )
