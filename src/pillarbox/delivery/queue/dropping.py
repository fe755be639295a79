"""Dropping: the operator gives up mail that still waits, and its recipients end `failed`.

The reason of the event is `dropped_by_operator`. What a process holds is never touched: it may be on the
wire. Whoever wants nothing to leave meanwhile pauses the same scope first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import asyncpg

from pillarbox.delivery.queue.overview import QueueFilter
from pillarbox.kernel.postgres.database import Connection, transaction
from pillarbox.timeline.record import Timeline
from pillarbox.timeline.rules import OPEN, EventDetail, EventKind, TimelineEntry

REASON = "dropped_by_operator"
BATCH = 500

# Across teams: the operator's command; a team, a destination or an email narrows it.
TAKE = """
    WITH free AS MATERIALIZED (
        SELECT team_id, email_id, grp
          FROM deliveries
         WHERE owner IS NULL
           AND ($1::uuid IS NULL OR team_id = $1)
           AND ($2::text IS NULL OR destination IN ($2, 'copies:' || $2))
           AND ($3::uuid IS NULL OR email_id = $3)
         ORDER BY team_id, email_id, grp
         LIMIT $4
           FOR UPDATE SKIP LOCKED
    )
    DELETE FROM deliveries d
     USING free
     WHERE d.team_id = free.team_id AND d.email_id = free.email_id AND d.grp = free.grp
    RETURNING d.team_id, d.email_id, d.grp, d.uncertain > 0 AS uncertain
"""

# Across teams, as above: who is still open in these groups.
STILL_OPEN = """
    SELECT r.team_id, r.email_id, r.grp, r.position
      FROM unnest($1::uuid[], $2::uuid[], $3::smallint[]) AS k (team_id, email_id, grp)
      JOIN recipients r ON r.team_id = k.team_id AND r.email_id = k.email_id AND r.grp = k.grp
     WHERE r.state = ANY ($4::text[])
     ORDER BY r.team_id, r.email_id, r.position
"""


async def drop(
    pool: asyncpg.Pool, timeline: Timeline, part: QueueFilter, now: Callable[[], datetime], batch: int = BATCH
) -> int:
    """End everything in this part of the queue that no process holds; returns how many items those were.

    In batches, each a transaction of its own: a drop that is interrupted has dropped what it has dropped.
    """
    dropped = 0
    while True:
        async with transaction(pool) as conn:
            gone = await conn.fetch(TAKE, *part.args, batch)
            if not gone:
                return dropped
            await timeline.record(conn, await ends(conn, gone, now()))
        dropped += len(gone)


async def ends(conn: Connection, gone: Sequence[Any], now: datetime) -> list[TimelineEntry]:
    """The ends of the recipients of work items that were dropped."""
    keys = sorted(_key(row) for row in gone)
    rows = await conn.fetch(STILL_OPEN, *zip(*keys, strict=True), sorted(OPEN))
    doubtful = {_key(row) for row in gone if row["uncertain"]}
    return [
        TimelineEntry(
            row["team_id"],
            row["email_id"],
            row["position"],
            EventKind.FAILED,
            now,
            EventDetail(reason=REASON, uncertain=_key(row) in doubtful),
        )
        for row in rows
    ]


def _key(row: Any) -> tuple[UUID, UUID, int]:
    return row["team_id"], row["email_id"], row["grp"]
