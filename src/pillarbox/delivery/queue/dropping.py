"""Dropping: the operator gives up mail that still waits, and its recipients end `failed`.

The reason of the event is `dropped_by_operator`. Items that a process holds are never touched: they may be on
the wire. To let nothing leave meanwhile, the operator pauses the same scope first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import asyncpg

from pillarbox.delivery.queue import dropping_queries
from pillarbox.delivery.queue.overview import QueueFilter
from pillarbox.kernel.postgres.database import Connection, transaction
from pillarbox.timeline.record import Timeline
from pillarbox.timeline.rules import EventDetail, EventKind, TimelineEntry

REASON = "dropped_by_operator"
BATCH = 500


async def drop(
    pool: asyncpg.Pool, timeline: Timeline, part: QueueFilter, now: Callable[[], datetime], batch: int = BATCH
) -> int:
    """End everything in this part of the queue that no process holds; returns how many items those were.

    In batches, each a transaction of its own: a drop that is interrupted keeps the batches that it has
    committed.
    """
    dropped = 0
    while True:
        async with transaction(pool) as conn:
            gone = await dropping_queries.take(conn, part, batch)
            if not gone:
                return dropped
            await timeline.record(conn, await ends(conn, gone, now()))
        dropped += len(gone)


async def ends(conn: Connection, gone: Sequence[Any], now: datetime) -> list[TimelineEntry]:
    """Return the ends of the recipients of work items that were dropped."""
    rows = await dropping_queries.still_open(conn, sorted(_key(row) for row in gone))
    doubtful = {_key(row) for row in gone if row["uncertain"]}
    return [
        TimelineEntry(
            team_id=row["team_id"],
            email_id=row["email_id"],
            position=row["position"],
            kind=EventKind.FAILED,
            at=now,
            detail=EventDetail(reason=REASON, uncertain=_key(row) in doubtful),
        )
        for row in rows
    ]


def _key(row: Any) -> tuple[UUID, UUID, int]:
    return row["team_id"], row["email_id"], row["grp"]
