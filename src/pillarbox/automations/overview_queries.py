"""SQL of what the operator sees of automations and their runs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from pillarbox.kernel.postgres.database import TeamDb


@dataclass(frozen=True, slots=True, kw_only=True)
class AutomationOverview:
    """An automation, with how many of its runs are in each state."""

    id: UUID
    name: str
    status: str
    version: int
    running: int
    completed: int
    failed: int
    cancelled: int
    created_at: datetime
    updated_at: datetime
    enabled_at: datetime | None


async def every(db: TeamDb) -> list[AutomationOverview]:
    """Return the automations of a team, the newest first."""
    return await db.all(
        AutomationOverview,
        """
        SELECT a.id, a.name, a.status, a.version, coalesce(r.running, 0) AS running,
               coalesce(r.completed, 0) AS completed, coalesce(r.failed, 0) AS failed,
               coalesce(r.cancelled, 0) AS cancelled, a.created_at, a.updated_at, a.enabled_at
          FROM automations a
          LEFT JOIN (SELECT automation_id, count(*) FILTER (WHERE status = 'running') AS running,
                            count(*) FILTER (WHERE status = 'completed') AS completed,
                            count(*) FILTER (WHERE status = 'failed') AS failed,
                            count(*) FILTER (WHERE status = 'cancelled') AS cancelled
                       FROM automation_runs
                      WHERE team_id = $1
                      GROUP BY automation_id) AS r ON r.automation_id = a.id
         WHERE a.team_id = $1 AND a.deleted_at IS NULL
         ORDER BY a.id DESC
        """,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class StepOverview:
    """A step of the newest graph: how many runs wait in it, and how many have failed there."""

    position: int
    waiting: int
    failed: int
    due_at: datetime | None


async def steps(db: TeamDb, automation_id: UUID, version: int) -> list[StepOverview]:
    """Return the steps in which runs of that version wait or have failed, with the time at which the next is
    due."""
    return await db.all(
        StepOverview,
        """
        SELECT coalesce(w.position, f.position) AS position, coalesce(w.waiting, 0) AS waiting,
               coalesce(f.failed, 0) AS failed, w.due_at
          FROM (SELECT k.position, count(*) AS waiting, min(k.due_at) AS due_at
                  FROM automation_work k
                  JOIN automation_runs r ON r.team_id = k.team_id AND r.id = k.run_id
                 WHERE k.team_id = $1 AND r.automation_id = $2 AND r.version = $3
                 GROUP BY k.position) AS w
          FULL JOIN (SELECT s.position, count(*) AS failed
                       FROM automation_steps s
                       JOIN automation_runs r ON r.team_id = s.team_id AND r.id = s.run_id
                      WHERE s.team_id = $1 AND r.automation_id = $2 AND r.version = $3 AND r.status = 'failed'
                        AND s.status = 'failed'
                      GROUP BY s.position) AS f ON f.position = w.position
         ORDER BY 1
        """,
        automation_id,
        version,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOverview:
    """A run, whose it is, and what it failed for or does next."""

    id: UUID
    status: str
    version: int
    contact: str | None
    event: str
    created_at: datetime
    completed_at: datetime | None
    due_at: datetime | None
    trouble: str | None
    """The temporary trouble for which the next step is tried again."""
    error: str | None


async def runs(db: TeamDb, automation_id: UUID, statuses: list[str] | None, limit: int) -> list[RunOverview]:
    """Return the newest runs of an automation."""
    return await db.all(
        RunOverview,
        """
        SELECT r.id, r.status, r.version, coalesce(c.email, c.address) AS contact, r.event_name AS event,
               r.created_at, r.completed_at, w.due_at, w.trouble, s.error
          FROM (SELECT x.id, x.status, x.version, x.contact_id, x.event_name, x.created_at, x.completed_at
                  FROM automation_runs x
                 WHERE x.team_id = $1 AND x.automation_id = $2
                   AND ($3::text[] IS NULL OR x.status = ANY ($3))
                 ORDER BY x.id DESC
                 LIMIT $4) AS r
          LEFT JOIN contacts c ON c.team_id = $1 AND c.id = r.contact_id
          LEFT JOIN LATERAL (SELECT min(k.due_at) AS due_at, max(k.reason) AS trouble
                               FROM automation_work k
                              WHERE k.team_id = $1 AND k.run_id = r.id) AS w ON true
          LEFT JOIN LATERAL (SELECT t.error->>'name' AS error
                               FROM automation_steps t
                              WHERE t.team_id = $1 AND t.run_id = r.id AND t.status = 'failed'
                              LIMIT 1) AS s ON true
         ORDER BY r.id DESC
        """,
        automation_id,
        statuses,
        limit,
    )
