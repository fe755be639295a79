"""SQL of how people look at automations. Each statement reads a bounded number of rows of large tables."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

from pillarbox.kernel.postgres.database import TeamDb

COUNTS: Final = """
    SELECT k.automation_id, k.status,
           (SELECT count(*)
              FROM (SELECT FROM automation_runs r
                     WHERE r.team_id = $1 AND r.automation_id = k.automation_id AND r.status = k.status
                     LIMIT $3) AS counted) AS runs
      FROM (SELECT a.automation_id, s.status
              FROM unnest($2::uuid[]) AS a (automation_id),
                   unnest(ARRAY['running', 'completed', 'failed', 'cancelled']) AS s (status)) AS k
"""

# The newest runs of each status by the index of lists, then their steps by the primary key. A step that was
# open when its run ended keeps its row, and counts as skipped.
STEPS: Final = """
    WITH newest AS MATERIALIZED (
        SELECT r.id, r.version, r.created_at, s.status
          FROM unnest(ARRAY['running', 'completed', 'failed', 'cancelled']) AS s (status)
         CROSS JOIN LATERAL (
               SELECT id, version, created_at
                 FROM automation_runs
                WHERE team_id = $1 AND automation_id = $2 AND status = s.status
                ORDER BY id DESC LIMIT $4) AS r
         ORDER BY r.id DESC
         LIMIT $4
    ), those AS MATERIALIZED (
        SELECT id, created_at, status = 'running' AS goes_on FROM newest WHERE version = $3
    )
    SELECT x.position, count(*) AS reached,
           count(*) FILTER (WHERE x.status IN ('running', 'waiting') AND those.goes_on) AS waiting,
           count(*) FILTER (WHERE x.status = 'failed') AS failed,
           count(*) FILTER (WHERE x.status = 'skipped'
                               OR x.status IN ('running', 'waiting') AND NOT those.goes_on) AS skipped,
           count(*) FILTER (WHERE x.status IN ('completed', 'skipped')) AS passed,
           count(*) FILTER (WHERE x.output->>'result' = 'true') AS met,
           count(*) FILTER (WHERE x.output->>'result' = 'false') AS unmet,
           count(*) FILTER (WHERE x.output->>'outcome' = 'event_received') AS came,
           count(*) FILTER (WHERE x.output->>'outcome' = 'timeout') AS late,
           (SELECT count(*) FROM those) AS runs, (SELECT min(created_at) FROM those) AS since
      FROM those
      JOIN automation_steps x ON x.team_id = $1 AND x.run_id = those.id
     GROUP BY x.position
"""

HEADING: Final = """
    SELECT id, name, status, version, updated_at
      FROM automations
     WHERE team_id = $1 AND id = $2 AND deleted_at IS NULL
"""

VERSIONS: Final = """
    SELECT version, created_at
      FROM automation_versions
     WHERE team_id = $1 AND automation_id = $2
     ORDER BY version DESC
     LIMIT $3
"""

VERSION: Final = """
    SELECT v.version, v.steps, v.connections, v.created_at
      FROM automation_versions v
      JOIN automations a ON a.team_id = v.team_id AND a.id = v.automation_id AND a.deleted_at IS NULL
     WHERE v.team_id = $1 AND v.automation_id = $2 AND v.version = $3
"""

NAMED: Final = """
    SELECT id, name, status, created_at, updated_at
      FROM automations
     WHERE team_id = $1 AND deleted_at IS NULL AND strpos(lower(name), lower($2)) > 0
     ORDER BY id DESC
     LIMIT $3
"""

RUN: Final = """
    SELECT r.id, r.version, r.event_name, r.trigger_key, r.contact_id, r.payload::text AS payload,
           r.contact_deleted_at, c.email, v.steps, v.connections
      FROM automation_runs r
      JOIN automations a ON a.team_id = r.team_id AND a.id = r.automation_id AND a.deleted_at IS NULL
      JOIN automation_versions v
        ON v.team_id = r.team_id AND v.automation_id = r.automation_id AND v.version = r.version
      LEFT JOIN LATERAL (SELECT coalesce(x.email, x.address) AS email
                           FROM contacts x WHERE x.team_id = $1 AND x.id = r.contact_id) AS c ON true
     WHERE r.team_id = $1 AND r.automation_id = $2 AND r.id = $3
"""

WAITS: Final = """
    SELECT position, due_at, waiting, event_name, reason, failing_since
      FROM automation_work
     WHERE team_id = $1 AND run_id = $2
"""

OWNERS: Final = """
    SELECT r.id, r.event_name, coalesce(c.email, c.address) AS email
      FROM automation_runs r
      LEFT JOIN contacts c ON c.team_id = r.team_id AND c.id = r.contact_id
     WHERE r.team_id = $1 AND r.id = ANY ($2::uuid[])
"""

# Ids of events are in the order of time, and the unique key of runs begins with them.
STARTED: Final = """
    SELECT r.event_id AS id, r.event_name AS name, left(r.payload::text, $5) AS payload,
           r.created_at AS at, coalesce(c.email, c.address) AS email, r.automation_id, r.id AS run_id
      FROM (SELECT DISTINCT ON (l.event_id) l.event_id, l.id
              FROM (SELECT event_id, event_name, id
                      FROM automation_runs
                     WHERE team_id = $1
                     ORDER BY event_id DESC
                     LIMIT $4) AS l
             WHERE $2::text IS NULL OR l.event_name = $2
             ORDER BY l.event_id DESC
             LIMIT $3) AS newest
      JOIN automation_runs r ON r.team_id = $1 AND r.id = newest.id
      LEFT JOIN contacts c ON c.team_id = $1 AND c.id = r.contact_id
     ORDER BY r.event_id DESC
"""

LISTENERS: Final = """
    SELECT n.event_name, t.automation_id, t.name
      FROM unnest($2::text[]) AS n (event_name)
     CROSS JOIN LATERAL (
           SELECT DISTINCT a.id AS automation_id, a.name
             FROM automation_triggers x
             JOIN automations a ON a.team_id = x.team_id AND a.id = x.automation_id
            WHERE x.team_id = $1 AND x.event_name = n.event_name AND a.deleted_at IS NULL
            ORDER BY a.id
            LIMIT $3) AS t
"""

# What ended last and what is due next are of the team, so a page hears of each step that its time brings. The
# newest runs of one automation are read by the index of lists.
DIGEST: Final = """
    SELECT md5(concat_ws(' ',
        (SELECT string_agg(concat_ws(',', a.id, a.status, a.version, a.name), ' ' ORDER BY a.id)
           FROM (SELECT id, status, version, name
                   FROM automations
                  WHERE team_id = $1 AND deleted_at IS NULL AND ($2::uuid IS NULL OR id = $2)
                  ORDER BY id DESC LIMIT 100) AS a),
        (SELECT string_agg(concat_ws(',', r.id, r.completed_at), ' ' ORDER BY r.id)
           FROM (SELECT id, automation_id, completed_at
                   FROM automation_runs
                  WHERE team_id = $1 AND completed_at IS NOT NULL
                  ORDER BY completed_at DESC LIMIT 50) AS r
          WHERE $2::uuid IS NULL OR r.automation_id = $2),
        (SELECT string_agg(concat_ws(',', w.run_id, w.position, w.due_at, w.reason), ' '
                           ORDER BY w.run_id, w.position)
           FROM (SELECT run_id, position, due_at, reason
                   FROM automation_work
                  WHERE team_id = $1 AND owner IS NULL
                  ORDER BY due_at LIMIT 50) AS w
           JOIN automation_runs r ON r.team_id = $1 AND r.id = w.run_id
          WHERE $2::uuid IS NULL OR r.automation_id = $2),
        (SELECT string_agg(n.id::text, ' ' ORDER BY n.id)
           FROM unnest(ARRAY['running', 'completed', 'failed', 'cancelled']) AS s (status)
          CROSS JOIN LATERAL (SELECT id
                                FROM automation_runs
                               WHERE team_id = $1 AND automation_id = $2 AND status = s.status
                               ORDER BY id DESC LIMIT 10) AS n),
        (SELECT string_agg(e.event_id::text, ' ')
           FROM (SELECT event_id
                   FROM automation_runs
                  WHERE team_id = $1 AND $2::uuid IS NULL
                  ORDER BY event_id DESC LIMIT 1) AS e)))
"""

DIGEST_OF_RUN: Final = """
    SELECT md5(concat_ws(' ',
        (SELECT status FROM automation_runs WHERE team_id = $1 AND id = $2),
        (SELECT string_agg(concat_ws(',', s.position, s.status), ' ' ORDER BY s.position)
           FROM automation_steps s WHERE s.team_id = $1 AND s.run_id = $2),
        (SELECT string_agg(concat_ws(',', w.position, w.due_at, w.reason), ' ' ORDER BY w.position)
           FROM automation_work w WHERE w.team_id = $1 AND w.run_id = $2)))
"""


class RunCount(NamedTuple):
    """How many runs of an automation have a status; no more than were asked for."""

    automation_id: UUID
    status: str
    runs: int


class StepCount(NamedTuple):
    """How many of the counted runs have reached a step, and what became of them there. `passed` went through
    it: of a condition it says how often it was met or not, of a wait how often the event came or was late.
    `runs` are counted, the oldest began at `since`."""

    position: int
    reached: int
    waiting: int
    failed: int
    skipped: int
    passed: int
    met: int
    unmet: int
    came: int
    late: int
    runs: int
    since: datetime


class AutomationHeading(NamedTuple):
    """An automation without its graph."""

    id: UUID
    name: str
    status: str
    version: int
    updated_at: datetime


class VersionEntry(NamedTuple):
    """A version of a graph in a list."""

    version: int
    created_at: datetime


class StoredVersion(NamedTuple):
    """A version with its graph as JSON."""

    version: int
    steps: str
    connections: str
    created_at: datetime


class NamedAutomation(NamedTuple):
    """An automation that was found by its name."""

    id: UUID
    name: str
    status: str
    created_at: datetime
    updated_at: datetime


class RunDetail(NamedTuple):
    """Whose run it is, and what started it. `email` is None where the contact is deleted."""

    id: UUID
    version: int
    event_name: str
    trigger_key: str
    contact_id: UUID
    payload: str
    contact_deleted_at: datetime | None
    email: str | None
    steps: str
    connections: str


class StepWait(NamedTuple):
    """A step that is ready or waits, until when, for which event, and for which temporary trouble."""

    position: int
    due_at: datetime
    waiting: bool
    event_name: str | None
    reason: str | None
    failing_since: datetime | None


class RunContact(NamedTuple):
    """The event that started a run, and the address of its contact."""

    id: UUID
    event_name: str
    email: str | None


class StartingEvent(NamedTuple):
    """An event that started runs, with one of them. `payload` is the beginning of its text."""

    id: UUID
    name: str
    payload: str
    at: datetime
    email: str | None
    automation_id: UUID
    run_id: UUID


class EventListener(NamedTuple):
    """An enabled automation that an event starts."""

    event_name: str
    automation_id: UUID
    name: str


async def counts(db: TeamDb, automation_ids: Sequence[UUID], limit: int) -> list[RunCount]:
    return await db.all(RunCount, COUNTS, automation_ids, limit)


async def steps(db: TeamDb, automation_id: UUID, version: int, limit: int) -> list[StepCount]:
    return await db.all(StepCount, STEPS, automation_id, version, limit)


async def heading(db: TeamDb, automation_id: UUID) -> AutomationHeading | None:
    return await db.one(AutomationHeading, HEADING, automation_id)


async def versions(db: TeamDb, automation_id: UUID, limit: int) -> list[VersionEntry]:
    return await db.all(VersionEntry, VERSIONS, automation_id, limit)


async def version(db: TeamDb, automation_id: UUID, number: int) -> StoredVersion | None:
    return await db.one(StoredVersion, VERSION, automation_id, number)


async def named(db: TeamDb, text: str, limit: int) -> list[NamedAutomation]:
    return await db.all(NamedAutomation, NAMED, text, limit)


async def run(db: TeamDb, automation_id: UUID, run_id: UUID) -> RunDetail | None:
    return await db.one(RunDetail, RUN, automation_id, run_id)


async def waits(db: TeamDb, run_id: UUID) -> list[StepWait]:
    return await db.all(StepWait, WAITS, run_id)


async def subjects(db: TeamDb, run_ids: Sequence[UUID]) -> list[RunContact]:
    return await db.all(RunContact, OWNERS, run_ids)


async def started(
    db: TeamDb, name: str | None, limit: int, looked_at: int, shown: int
) -> list[StartingEvent]:
    return await db.all(StartingEvent, STARTED, name, limit, looked_at, shown)


async def digest(db: TeamDb, automation_id: UUID | None) -> str:
    found: str = await db.value(DIGEST, automation_id)
    return found


async def digest_of_run(db: TeamDb, run_id: UUID | None) -> str:
    found: str = await db.value(DIGEST_OF_RUN, run_id)
    return found


async def listeners(db: TeamDb, names: Sequence[str], limit: int) -> list[EventListener]:
    return await db.all(EventListener, LISTENERS, names, limit)
