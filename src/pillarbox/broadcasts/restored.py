"""Broadcasts in a database that was restored from a backup: they may have been sent since, wholly or in part.

So none goes on by itself. One that was being sent is paused, and the jobs of all are put aside as other work
is (`pillarbox.backup.restored`), so that no schedule begins.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from pillarbox.broadcasts.queries import JOB_START, JOB_WATCH
from pillarbox.kernel.postgres.database import Connection
from pillarbox.kernel.work.collectors import changed

JOBS: Final = (JOB_START, JOB_WATCH)

# All statements here are across teams: a restore is the installation's.

PAUSE: Final = """
    UPDATE broadcasts SET paused_at = $1, paused_for = $2 WHERE status = 'queued' AND paused_at IS NULL
"""

GO_ON: Final = """
    UPDATE broadcasts SET paused_at = NULL, paused_for = NULL, resumed_at = $1 WHERE paused_for = $2
"""

RELEASE_JOBS: Final = """
    UPDATE jobs SET due_at = restored_due_at, restored_due_at = NULL
     WHERE restored_due_at IS NOT NULL AND owner IS NULL AND kind = ANY ($1::text[])
       AND ($2::timestamptz IS NULL OR kind = $3 AND restored_due_at > $2)
"""

GIVE_UP: Final = """
    UPDATE broadcasts b
       SET status = CASE b.status WHEN 'scheduled' THEN 'draft' ELSE 'canceled' END,
           scheduled_at = CASE b.status WHEN 'scheduled' THEN NULL ELSE b.scheduled_at END,
           paused_at = NULL, paused_for = NULL
      FROM jobs j
     WHERE j.restored_due_at IS NOT NULL AND j.owner IS NULL AND j.kind = ANY ($1::text[])
       AND b.team_id = j.team_id AND b.id = j.subject_id AND b.status IN ('scheduled', 'queued')
"""


async def pause(conn: Connection, reason: str, now: datetime) -> None:
    """Pause all that are being sent."""
    await conn.execute(PAUSE, now, reason)


async def release(conn: Connection, reason: str, due_after: datetime | None, now: datetime) -> int:
    """Let them go on, or begin those alone that are due after an instant; returns how many there were."""
    moved = changed(await conn.execute(RELEASE_JOBS, JOBS, due_after, JOB_START))
    if due_after is None:
        await conn.execute(GO_ON, now, reason)
    return moved


async def drop(conn: Connection) -> int:
    """Give up those that are put aside: what was scheduled is a draft again, what was being sent is canceled.
    Their jobs are the caller's to delete."""
    return changed(await conn.execute(GIVE_UP, JOBS))
