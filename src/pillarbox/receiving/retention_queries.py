"""SQL that removes received mail that is old."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

import asyncpg

from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.work.collectors import changed


class ExpiredEmail(NamedTuple):
    """An email that is over its time; a free one is in no inbox."""

    id: UUID
    is_free: bool


async def teams(pool: asyncpg.Pool) -> list[TeamDb]:
    """Return every team: each of them is gone through on its own."""
    return [TeamDb(pool, row["id"]) for row in await pool.fetch("SELECT id FROM teams ORDER BY id")]


async def page(db: TeamDb, after: UUID, end: UUID, limit: int) -> list[ExpiredEmail]:
    """Return the next emails behind an id, up to another one."""
    return await db.all(
        ExpiredEmail,
        """
        SELECT id, inboxes IS NULL AS is_free
          FROM received_emails
         WHERE team_id = $1 AND id > $2 AND id < $3
         ORDER BY id
         LIMIT $4
        """,
        after,
        end,
        limit,
    )


async def lock_free(db: TeamDb, ids: Sequence[UUID]) -> Sequence[UUID]:
    """Lock those of these emails that are in no inbox and that nobody else has locked; return their ids."""
    return await db.values(
        """
        SELECT id
          FROM received_emails
         WHERE team_id = $1 AND id = ANY ($2::uuid[]) AND inboxes IS NULL
         ORDER BY id
           FOR UPDATE SKIP LOCKED
        """,
        ids,
    )


async def delete_sources(db: TeamDb, ids: Sequence[UUID]) -> Sequence[str | None]:
    """Delete the messages of these emails; return their blobs."""
    return await db.values(
        """
        DELETE FROM received_sources WHERE team_id = $1 AND id = ANY ($2::uuid[]) RETURNING blob
        """,
        ids,
    )


async def delete_emails(db: TeamDb, ids: Sequence[UUID]) -> None:
    """Delete these emails with their attachments, and subtract their octets from the usage of their days."""
    await db.run(
        """
        WITH parts AS (
            DELETE FROM received_attachments WHERE team_id = $1 AND email_id = ANY ($2::uuid[])
        ), gone AS (
            DELETE FROM received_emails WHERE team_id = $1 AND id = ANY ($2::uuid[])
            RETURNING created_at, size
        )
        UPDATE usage_days u
           SET octets = u.octets - g.octets
          FROM (SELECT created_at::date AS day, sum(size) AS octets FROM gone GROUP BY 1) AS g
         WHERE u.team_id = $1 AND u.day = g.day
        """,
        ids,
    )


async def forget_seen(pool: asyncpg.Pool, before: datetime, limit: int) -> int:
    """Delete fingerprints of all teams that were seen before an instant; return how many."""
    status = await pool.execute(
        """
        WITH old AS MATERIALIZED (
            SELECT team_id, fingerprint FROM received_seen WHERE at < $1 LIMIT $2 FOR UPDATE SKIP LOCKED
        )
        DELETE FROM received_seen s
         USING old
         WHERE s.team_id = old.team_id AND s.fingerprint = old.fingerprint
        """,
        before,
        limit,
    )
    return changed(status)


async def forget_team(db: TeamDb) -> None:
    """Delete every fingerprint of the team: what came before is new again."""
    await db.run("DELETE FROM received_seen WHERE team_id = $1")
