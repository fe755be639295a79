"""Broadcasts in a database that was restored from a backup: they may have been sent since, wholly or in part.

So none goes on by itself. One that was being sent is paused, and the jobs of all are put aside as other work
is (`pillarbox.backup.restored`), so that no schedule begins.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from pillarbox.broadcasts import queries
from pillarbox.broadcasts.queries import JOB_START, JOB_WATCH
from pillarbox.kernel.postgres.database import Connection

JOBS: Final = (JOB_START, JOB_WATCH)


async def pause(conn: Connection, reason: str, now: datetime) -> None:
    """Pause all that are being sent."""
    await queries.pause_all(conn, reason, now)


async def release(conn: Connection, reason: str, due_after: datetime | None, now: datetime) -> int:
    """Let them go on, or begin those alone that are due after an instant; returns how many there were."""
    moved = await queries.release_restored_jobs(conn, due_after)
    if due_after is None:
        await queries.resume_all(conn, reason, now)
    return moved


async def drop(conn: Connection) -> int:
    """Give up those that are put aside: what was scheduled is a draft again, what was being sent is canceled.
    Their jobs are the caller's to delete."""
    return await queries.give_up_restored(conn)
