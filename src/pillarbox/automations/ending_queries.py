"""SQL that ends runs: those of an automation that was stopped, and everything of one that was deleted."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from pillarbox.kernel.postgres.database import TeamDb


async def cancel_runs(db: TeamDb, automation_id: UUID, before: int, limit: int, now: datetime) -> int:
    """Cancel at most so many of its runs of epochs before that one, the oldest first; returns how many."""
    return await db.run(
        """
        WITH over AS MATERIALIZED (
            SELECT id
              FROM automation_runs
             WHERE team_id = $1 AND automation_id = $2 AND status = 'running' AND epoch < $3
             ORDER BY id
             LIMIT $4
               FOR NO KEY UPDATE
        ), dropped AS (
            DELETE FROM automation_work w
             USING over
             WHERE w.team_id = $1 AND w.run_id = over.id
        )
        UPDATE automation_runs r
           SET status = 'cancelled', completed_at = $5
          FROM over
         WHERE r.team_id = $1 AND r.id = over.id AND r.status = 'running'
        """,
        automation_id,
        before,
        limit,
        now,
    )


async def epoch_of(db: TeamDb, automation_id: UUID) -> int | None:
    """Return the automation's epoch: runs of earlier ones are to end. None where the automation is gone."""
    epoch: int | None = await db.value(
        "SELECT epoch FROM automations WHERE team_id = $1 AND id = $2", automation_id
    )
    return epoch


async def is_deleted(db: TeamDb, automation_id: UUID) -> bool:
    found = await db.value(
        "SELECT deleted_at IS NOT NULL FROM automations WHERE team_id = $1 AND id = $2", automation_id
    )
    return found is True


async def remove_runs(db: TeamDb, automation_id: UUID, limit: int) -> int:
    """Remove at most so many runs of a deleted automation, with their steps; returns how many."""
    return await db.run(
        """
        WITH over AS MATERIALIZED (
            SELECT r.id
              FROM automation_runs r
             WHERE r.team_id = $1 AND r.automation_id = $2
             ORDER BY r.id
             LIMIT $3
               FOR UPDATE
        ), steps AS (
            DELETE FROM automation_steps s
             USING over
             WHERE s.team_id = $1 AND s.run_id = over.id
        ), dropped AS (
            DELETE FROM automation_work w
             USING over
             WHERE w.team_id = $1 AND w.run_id = over.id
        )
        DELETE FROM automation_runs r
         USING over
         WHERE r.team_id = $1 AND r.id = over.id
        """,
        automation_id,
        limit,
    )


async def remove(db: TeamDb, automation_id: UUID) -> None:
    """Remove a deleted automation whose runs are gone, with its versions."""
    await db.run(
        """
        WITH gone AS (
            DELETE FROM automations a
             WHERE a.team_id = $1 AND a.id = $2 AND a.deleted_at IS NOT NULL
               AND NOT EXISTS (SELECT FROM automation_runs r
                                WHERE r.team_id = $1 AND r.automation_id = a.id)
            RETURNING a.id
        )
        DELETE FROM automation_versions v
         USING gone
         WHERE v.team_id = $1 AND v.automation_id = gone.id
        """,
        automation_id,
    )
