"""SQL of what requests share: answers of idempotent requests, and the switch of maintenance."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from pillarbox.kernel.postgres.database import Connection, Source


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """An answer that was given and will be given again."""

    fingerprint: bytes
    status: int
    body: bytes


async def answer(source: Source, team_id: UUID, scope: str, key: str, since: datetime) -> StoredAnswer | None:
    """Return the answer that was given under this key after an instant."""
    row = await source.fetchrow(
        """
        SELECT fingerprint, status, body
          FROM idempotency_keys
         WHERE team_id = $1 AND scope = $2 AND key = $3 AND created_at > $4
        """,
        team_id,
        scope,
        key,
        since,
    )
    return None if row is None else StoredAnswer(**row)


async def lock_key(conn: Connection, name: str) -> bool:
    """Hold the lock of this name until the transaction ends; False where somebody else does."""
    # Tried, never waited for (contract decision 26).
    locked: bool = await conn.fetchval("SELECT pg_try_advisory_xact_lock(hashtextextended($1, 0))", name)
    return locked


async def store_answer(
    conn: Connection,
    team_id: UUID,
    scope: str,
    key: str,
    answer: StoredAnswer,
    now: datetime,
    replaced: datetime,
) -> bool:
    """Store an answer; False where the key has one that was given after `replaced`."""
    stored = await conn.fetchval(
        """
        INSERT INTO idempotency_keys AS i (team_id, scope, key, fingerprint, status, body, created_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7)
        ON CONFLICT (team_id, scope, key) DO UPDATE
           SET fingerprint = excluded.fingerprint, status = excluded.status, body = excluded.body,
               created_at = excluded.created_at
         WHERE i.created_at <= $8
        RETURNING true
        """,
        team_id,
        scope,
        key,
        answer.fingerprint,
        answer.status,
        answer.body,
        now,
        replaced,
    )
    return stored is not None


# The table of maintenance is the installation's and has at most one row.
IS_IN_MAINTENANCE: Final = "SELECT EXISTS (SELECT FROM maintenance)"
"""Asked by the poll of queues."""


async def maintenance(source: Source) -> int | None:
    """Return after how many seconds clients are told to come again; None without maintenance."""
    seconds: int | None = await source.fetchval("SELECT retry_after FROM maintenance")
    return seconds


async def begin_maintenance(source: Source, retry_after: int) -> None:
    """Put clients off, with this many seconds from now on."""
    await source.execute(
        """
        INSERT INTO maintenance (since, retry_after) VALUES (now(), $1)
        ON CONFLICT (id) DO UPDATE SET retry_after = excluded.retry_after
        """,
        retry_after,
    )


async def end_maintenance(source: Source) -> None:
    """Put nobody off any more."""
    await source.execute("DELETE FROM maintenance")
