"""Runs in a database that was restored from a backup: their steps may have been carried out since.

So none goes on by itself: all work of runs is put aside as other work is (`pillarbox.backup.restored`). An
event that a run waits for still ends the wait: what follows it has surely not been done.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from pillarbox.automations import restored_queries
from pillarbox.kernel.postgres.database import Connection, Source
from pillarbox.kernel.work.collectors import in_batches

BATCH: Final = 2000


async def hold(conn: Connection, until: datetime, reason: str) -> None:
    """Put aside the work of all runs."""
    await restored_queries.hold(conn, until, reason)


async def release(source: Source, held: datetime, due_after: datetime | None) -> int:
    """Let runs go on, or those steps alone that are due after an instant; returns how many steps."""

    async def some() -> int:
        return await restored_queries.release(source, held, due_after, BATCH)

    return await in_batches(some)


async def drop(source: Source, held: datetime, now: datetime) -> int:
    """Cancel the runs whose work is put aside; returns how many."""
    dropped = 0
    while n := await restored_queries.drop(source, held, BATCH, now):
        dropped += n
    return dropped
