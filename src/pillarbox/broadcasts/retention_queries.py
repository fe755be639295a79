"""SQL that removes what broadcasts share with their emails."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

import asyncpg

from pillarbox.kernel.postgres.database import TeamDb


class EndedBroadcast(NamedTuple):
    """A broadcast that is over."""

    team_id: UUID
    id: UUID
    content_id: UUID | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovedRecipients:
    """How many recipients were removed, and the last contact that was looked at."""

    removed: int
    contact_id: UUID


async def next_purged(pool: asyncpg.Pool, after: tuple[UUID, UUID]) -> EndedBroadcast | None:
    """Return the next broadcast that is over, of any team whose emails of that time were removed."""
    row = await pool.fetchrow(
        """
        SELECT b.team_id, b.id, b.content_id
          FROM broadcasts b
          JOIN purges p ON p.team_id = b.team_id
         WHERE (b.team_id, b.id) > ($1, $2) AND b.status IN ('sent', 'canceled') AND b.resolved_at < p.before
           AND (EXISTS (SELECT FROM broadcast_recipients r
                         WHERE r.team_id = b.team_id AND r.broadcast_id = b.id)
                OR EXISTS (SELECT FROM contents c WHERE c.team_id = b.team_id AND c.id = b.content_id))
         ORDER BY b.team_id, b.id
         LIMIT 1
        """,
        *after,
    )
    return None if row is None else EndedBroadcast(*row)


async def next_old(pool: asyncpg.Pool, after: tuple[UUID, UUID], before: datetime) -> EndedBroadcast | None:
    """Return the next broadcast with bodies, of any team, that was over before an instant and none of whose
    copies is on its way."""
    row = await pool.fetchrow(
        """
        SELECT b.team_id, b.id, b.content_id
          FROM broadcasts b
          JOIN contents c ON c.team_id = b.team_id AND c.id = b.content_id
         WHERE (b.team_id, b.id) > ($1, $2) AND b.status IN ('sent', 'canceled')
           AND coalesce(b.sent_at, b.resolved_at) < $3 AND (c.html IS NOT NULL OR c.text IS NOT NULL)
           AND NOT EXISTS (SELECT FROM deliveries d
                             JOIN emails e ON e.team_id = d.team_id AND e.id = d.email_id
                            WHERE d.team_id = b.team_id AND e.broadcast_id = b.id)
         ORDER BY b.team_id, b.id
         LIMIT 1
        """,
        *after,
        before,
    )
    return None if row is None else EndedBroadcast(*row)


async def remove_recipients(
    db: TeamDb, broadcast_id: UUID, after: UUID, limit: int
) -> RemovedRecipients | None:
    """Remove those of the next recipients that have no email: they were skipped, or it was removed.
    Return None where there are no more recipients."""
    return await db.one(
        RemovedRecipients,
        """
        WITH span AS MATERIALIZED (
            SELECT contact_id, email_id
              FROM broadcast_recipients
             WHERE team_id = $1 AND broadcast_id = $2 AND contact_id > $3
             ORDER BY contact_id
             LIMIT $4
        ), gone AS (
            DELETE FROM broadcast_recipients r
             USING span
             WHERE r.team_id = $1 AND r.broadcast_id = $2 AND r.contact_id = span.contact_id
               AND NOT EXISTS (SELECT FROM emails e WHERE e.team_id = $1 AND e.id = span.email_id)
            RETURNING 1
        )
        SELECT (SELECT count(*) FROM gone) AS removed, contact_id
          FROM span
         ORDER BY contact_id DESC
         LIMIT 1
        """,
        broadcast_id,
        after,
        limit,
    )


async def has_recipients(db: TeamDb, broadcast_id: UUID) -> bool:
    """Return whether recipients of the broadcast are left."""
    found: bool = await db.value(
        "SELECT EXISTS (SELECT FROM broadcast_recipients WHERE team_id = $1 AND broadcast_id = $2)",
        broadcast_id,
    )
    return found
