"""SQL of runs as they are shown. One that is running in an older epoch than its automation is cancelled,
although nobody has written it down yet (docs/decisions/0114)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final, Literal, NamedTuple
from uuid import UUID

from pillarbox.automations.queries import JOB_END
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.wire.paging import Page

RunStatus = Literal["running", "completed", "failed", "cancelled"]

OWNER: Final = """
    SELECT epoch, updated_at,
           EXISTS (SELECT FROM jobs j
                    WHERE j.team_id = $1 AND j.kind = $3 AND j.subject_id = a.id) AS is_ending
      FROM automations a
     WHERE team_id = $1 AND id = $2 AND deleted_at IS NULL
"""

# One look-up for each status, so the runs of others are not read. `$7` says of each whether those of older
# epochs are wanted, and null that it makes no difference.
PAGE: Final = """
    SELECT id, status, epoch, started_at, completed_at, created_at FROM (
        (SELECT r.id, r.status, r.epoch, r.started_at, r.completed_at, r.created_at
           FROM unnest($6::text[], $7::boolean[]) AS k (status, is_old)
          CROSS JOIN LATERAL (
                SELECT id, status, epoch, started_at, completed_at, created_at
                  FROM automation_runs
                 WHERE team_id = $1 AND automation_id = $5 AND status = k.status AND id < $2
                   AND (k.is_old IS NULL OR (epoch < $8) = k.is_old)
                 ORDER BY id DESC LIMIT $4) AS r
          ORDER BY r.id DESC LIMIT $4)
        UNION ALL
        (SELECT r.id, r.status, r.epoch, r.started_at, r.completed_at, r.created_at
           FROM unnest($6::text[], $7::boolean[]) AS k (status, is_old)
          CROSS JOIN LATERAL (
                SELECT id, status, epoch, started_at, completed_at, created_at
                  FROM automation_runs
                 WHERE team_id = $1 AND automation_id = $5 AND status = k.status AND id > $3
                   AND (k.is_old IS NULL OR (epoch < $8) = k.is_old)
                 ORDER BY id LIMIT $4) AS r
          ORDER BY r.id LIMIT $4)
    ) AS page
"""

RUN: Final = """
    SELECT r.id, r.status, r.epoch, r.started_at, r.completed_at, r.created_at, r.trigger_key,
           r.contact_id, r.event_name, v.steps, v.connections
      FROM automation_runs r
      JOIN automation_versions v
        ON v.team_id = r.team_id AND v.automation_id = r.automation_id AND v.version = r.version
     WHERE r.team_id = $1 AND r.automation_id = $2 AND r.id = $3
"""

STEPS: Final = """
    SELECT position, status, started_at, completed_at, output, error
      FROM automation_steps
     WHERE team_id = $1 AND run_id = $2
"""


class RunOwner(NamedTuple):
    """The automation of runs. `is_ending`: runs of older epochs may still have to be cancelled."""

    epoch: int
    updated_at: datetime
    is_ending: bool


class ListedRun(NamedTuple):
    """A run as its row has it."""

    id: UUID
    status: RunStatus
    epoch: int
    started_at: datetime | None
    completed_at: datetime | None
    created_at: datetime


class FoundRun(NamedTuple):
    """The same, with its way and the graph that it walks."""

    id: UUID
    status: RunStatus
    epoch: int
    started_at: datetime | None
    completed_at: datetime | None
    created_at: datetime
    trigger_key: str
    contact_id: UUID
    event_name: str
    steps: str
    connections: str


class StepRow(NamedTuple):
    """A step that was reached; `output` and `error` are JSON."""

    position: int
    status: Literal["running", "waiting", "completed", "failed", "skipped"]
    started_at: datetime | None
    completed_at: datetime | None
    output: str | None
    error: str | None


class RunFilter(NamedTuple):
    """Runs of this status; of older epochs, of this one, or of both (None)."""

    status: RunStatus
    is_old: bool | None


async def owner(db: TeamDb, automation_id: UUID) -> RunOwner | None:
    return await db.one(RunOwner, OWNER, automation_id, JOB_END)


async def page(
    db: TeamDb, page: Page, automation_id: UUID, parts: Sequence[RunFilter], epoch: int
) -> list[ListedRun]:
    statuses, old = zip(*parts, strict=True)
    return await db.all(ListedRun, PAGE, *page.args, automation_id, statuses, old, epoch)


async def run(db: TeamDb, automation_id: UUID, run_id: UUID) -> FoundRun | None:
    return await db.one(FoundRun, RUN, automation_id, run_id)


async def steps(db: TeamDb, run_id: UUID) -> list[StepRow]:
    return await db.all(StepRow, STEPS, run_id)


class RunOfContact(NamedTuple):
    """A run with the automation that it belongs to."""

    id: UUID
    automation_id: UUID
    name: str
    event_name: str
    status: RunStatus
    created_at: datetime
    completed_at: datetime | None


OF_CONTACT: Final = """
    SELECT r.id, r.automation_id, a.name, r.event_name,
           CASE WHEN r.status = 'running' AND r.epoch < a.epoch THEN 'cancelled' ELSE r.status END AS status,
           r.created_at, r.completed_at
      FROM automation_runs r
      JOIN automations a ON a.team_id = r.team_id AND a.id = r.automation_id
     WHERE r.team_id = $1 AND r.contact_id = $2 AND r.id < $3
     ORDER BY r.id DESC
     LIMIT $4
"""


async def of_contact(db: TeamDb, contact_id: UUID, before: UUID, limit: int) -> list[RunOfContact]:
    """Return the newest runs of a contact before an id."""
    return [
        RunOfContact._make(row)
        for row in await db.source.fetch(OF_CONTACT, db.team_id, contact_id, before, limit)
    ]
