"""SQL of runs in a database that was restored (`restored`)."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from pillarbox.kernel.postgres.database import Connection, Source
from pillarbox.kernel.work.collectors import changed

# All statements here are across teams: a restore is the installation's.

HOLD: Final = """
    UPDATE automation_work
       SET restored_due_at = due_at, due_at = $1, owner = NULL, leased_until = NULL, reason = $2,
           order_at = NULL
     WHERE due_at < $1
"""

RELEASE: Final = """
    WITH chosen AS MATERIALIZED (
        SELECT team_id, run_id, position
          FROM automation_work
         WHERE restored_due_at IS NOT NULL AND due_at = $1
           AND ($2::timestamptz IS NULL OR restored_due_at > $2)
         ORDER BY team_id, run_id, position
         LIMIT $3
           FOR UPDATE SKIP LOCKED
    )
    UPDATE automation_work w
       SET due_at = w.restored_due_at, restored_due_at = NULL, reason = NULL
      FROM chosen
     WHERE w.team_id = chosen.team_id AND w.run_id = chosen.run_id AND w.position = chosen.position
"""

# Locks are taken in the order of ids, and on runs before their work.
DROP: Final = """
    WITH held AS MATERIALIZED (
        SELECT r.team_id, r.id
          FROM automation_runs r
         WHERE r.status = 'running'
           AND (r.team_id, r.id) IN (SELECT w.team_id, w.run_id
                                       FROM automation_work w
                                      WHERE w.restored_due_at IS NOT NULL AND w.due_at = $1
                                      LIMIT $2)
         ORDER BY r.team_id, r.id
           FOR NO KEY UPDATE
    ), gone AS (
        DELETE FROM automation_work w
         USING held
         WHERE w.team_id = held.team_id AND w.run_id = held.id
    )
    UPDATE automation_runs r
       SET status = 'cancelled', completed_at = $3
      FROM held
     WHERE r.team_id = held.team_id AND r.id = held.id
"""


async def hold(conn: Connection, until: datetime, reason: str) -> None:
    """Put aside the work of all runs."""
    await conn.execute(HOLD, until, reason)


async def release(source: Source, held: datetime, due_after: datetime | None, limit: int) -> int:
    """Let up to so many steps go on; returns how many."""
    return changed(await source.execute(RELEASE, held, due_after, limit))


async def drop(source: Source, held: datetime, limit: int, now: datetime) -> int:
    """Cancel runs whose work is put aside, of up to so many steps; returns how many."""
    return changed(await source.execute(DROP, held, limit, now))
