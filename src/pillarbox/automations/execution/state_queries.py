"""SQL of runs that are being walked: reading them under their locks, and writing what became of them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple
from uuid import UUID

from pillarbox.automations.execution.walks import LockedRun
from pillarbox.automations.graphs.stored import StoredGraph
from pillarbox.kernel.postgres.database import TeamDb

# In the order of ids, as by everybody who locks several.
LOCK: Final = """
    SELECT id, automation_id, version, epoch, event_name, contact_id, status, started_at, contact_deleted_at
      FROM automation_runs
     WHERE team_id = $1 AND id = ANY ($2::uuid[])
     ORDER BY id
       FOR NO KEY UPDATE
"""

LOCK_OF_CONTACT: Final = """
    SELECT id
      FROM automation_runs
     WHERE team_id = $1 AND contact_id = $2 AND status = 'running'
     ORDER BY id
       FOR NO KEY UPDATE
"""

# A statement of its own, after the locks: it sees what was committed meanwhile.
EPOCHS: Final = """
    SELECT id, epoch FROM automations WHERE team_id = $1 AND id = ANY ($2::uuid[])
"""

REACHED: Final = """
    SELECT run_id, position FROM automation_steps WHERE team_id = $1 AND run_id = ANY ($2::uuid[])
"""

WORK: Final = """
    SELECT run_id, position, owner, attempt, due_at, event_name, waits_from
      FROM automation_work
     WHERE team_id = $1 AND run_id = ANY ($2::uuid[])
     ORDER BY run_id, position
       FOR UPDATE
"""

WAITS: Final = """
    SELECT w.run_id, r.automation_id, r.version, w.position
      FROM automation_work w
      JOIN automation_runs r ON r.team_id = w.team_id AND r.id = w.run_id
     WHERE w.team_id = $1 AND w.contact_id = $2 AND w.event_name = $3 AND w.waits_from <= $4
"""

# What waits for this to happen to a mail: where the run has sent mail, it must be one of its own, whenever it
# happened; else it must have happened since the wait began.
MAIL_WAITS: Final = """
    SELECT w.run_id, r.automation_id, r.version, w.position
      FROM automation_work w
      JOIN automation_runs r ON r.team_id = w.team_id AND r.id = w.run_id
      LEFT JOIN LATERAL (
           SELECT bool_or(s.output->>'email_id' = $5::text) AS is_own
             FROM automation_steps s
            WHERE s.team_id = w.team_id AND s.run_id = w.run_id AND s.output->>'email_id' IS NOT NULL
           ) AS mail ON true
     WHERE w.team_id = $1 AND w.contact_id = $2 AND w.event_name = $3
       AND coalesce(mail.is_own, w.waits_from <= $4)
"""

# The run whose step is being carried out: of a contact it is always the first one.
CARRIED_OUT: Final = """
    SELECT w.run_id
      FROM (SELECT run_id, owner
              FROM automation_work
             WHERE team_id = $1 AND contact_id = $2 AND order_at IS NOT NULL
             ORDER BY order_at, run_id, position
             LIMIT 1) AS w
     WHERE w.owner IS NOT NULL
"""

SHARE: Final = """
    SELECT true FROM automation_runs WHERE team_id = $1 AND id = $2 FOR SHARE
"""

DATA: Final = """
    SELECT id, payload, waited FROM automation_runs WHERE team_id = $1 AND id = ANY ($2::uuid[])
"""

WAITED: Final = """
    SELECT id, waited FROM automation_runs WHERE team_id = $1 AND id = ANY ($2::uuid[]) AND waited IS NOT NULL
"""

MARK_CONTACT_DELETED: Final = """
    UPDATE automation_runs SET contact_deleted_at = $3 WHERE team_id = $1 AND id = $2
"""

VERSION: Final = """
    SELECT steps, connections
      FROM automation_versions
     WHERE team_id = $1 AND automation_id = $2 AND version = $3
"""

WRITE_STEPS: Final = """
    INSERT INTO automation_steps (team_id, run_id, position, status, started_at, completed_at, output, error)
    SELECT $1, k.run_id, k.position, k.status, k.started_at, k.completed_at, k.output::json, k.error::json
      FROM unnest($2::uuid[], $3::smallint[], $4::text[], $5::timestamptz[], $6::timestamptz[], $7::text[],
                  $8::text[]) AS k (run_id, position, status, started_at, completed_at, output, error)
    ON CONFLICT (team_id, run_id, position) DO UPDATE
       SET status = excluded.status, completed_at = excluded.completed_at, output = excluded.output,
           error = excluded.error
"""

REMOVE_WORK: Final = """
    DELETE FROM automation_work w
     USING unnest($2::uuid[], $3::smallint[]) AS k (run_id, position)
     WHERE w.team_id = $1 AND w.run_id = k.run_id AND w.position = k.position
"""

ADD_WORK: Final = """
    INSERT INTO automation_work (team_id, run_id, position, contact_id, due_at, waiting, event_name,
                                 waits_from, order_at)
    SELECT $1, k.run_id, k.position, k.contact_id, k.due_at, k.waiting, k.event_name, k.waits_from,
           k.order_at
      FROM unnest($2::uuid[], $3::smallint[], $4::uuid[], $5::timestamptz[], $6::boolean[], $7::text[],
                  $8::timestamptz[], $9::timestamptz[])
           AS k (run_id, position, contact_id, due_at, waiting, event_name, waits_from, order_at)
"""

LAST_ORDER: Final = """
    SELECT order_at
      FROM automation_work
     WHERE team_id = $1 AND contact_id = $2 AND order_at IS NOT NULL
     ORDER BY order_at DESC
     LIMIT 1
"""

WRITE_RUNS: Final = """
    UPDATE automation_runs r
       SET status = k.status, started_at = coalesce(r.started_at, k.at),
           completed_at = CASE WHEN k.status <> 'running' THEN k.at END,
           waited = coalesce(k.waited::json, r.waited),
           contact_deleted_at = k.contact_deleted_at
      FROM unnest($2::uuid[], $3::text[], $4::timestamptz[], $5::text[], $6::timestamptz[])
           AS k (id, status, at, waited, contact_deleted_at)
     WHERE r.team_id = $1 AND r.id = k.id AND r.status = 'running'
"""

INSERT_RUN: Final = """
    INSERT INTO automation_runs (team_id, id, automation_id, version, epoch, event_id, event_name,
                                 trigger_key, contact_id, status, payload, created_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, 'running', $10::text::json, $11)
    ON CONFLICT ON CONSTRAINT automation_runs_once DO NOTHING
"""

# Whoever disables the automation waits for those who hold its triggers.
TRIGGERS: Final = """
    SELECT automation_id, trigger_key, version, epoch
      FROM automation_triggers
     WHERE team_id = $1 AND event_name = $2 AND enabled_at <= $3
     ORDER BY automation_id, trigger_key
       FOR KEY SHARE
"""

# A step that is being carried out may begin a wait that is not committed yet: what its graph waits for
# counts.
LISTENING: Final = """
    SELECT k.name
      FROM unnest($2::text[]) AS k (name)
     WHERE EXISTS (SELECT FROM automation_triggers t WHERE t.team_id = $1 AND t.event_name = k.name)
        OR EXISTS (SELECT FROM automation_work w WHERE w.team_id = $1 AND w.event_name = k.name)
        OR k.name IN (
           SELECT step->'config'->>'event_name'
             FROM (SELECT DISTINCT r.automation_id, r.version
                     FROM automation_work w
                     JOIN automation_runs r ON r.team_id = w.team_id AND r.id = w.run_id
                    WHERE w.team_id = $1 AND w.owner IS NOT NULL) AS carried_out
             JOIN automation_versions v
               ON v.team_id = $1 AND v.automation_id = carried_out.automation_id
              AND v.version = carried_out.version
            CROSS JOIN LATERAL json_array_elements(v.steps) AS step
            WHERE step->>'type' = 'wait_for_event')
"""

# Runs that go on without the contact, because a step of theirs deleted it, are not among them.
CANCEL_OF_CONTACT: Final = """
    WITH held AS MATERIALIZED (
        SELECT id
          FROM automation_runs
         WHERE team_id = $1 AND contact_id = $2 AND status = 'running' AND contact_deleted_at IS NULL
         ORDER BY id
           FOR NO KEY UPDATE
    ), dropped AS (
        DELETE FROM automation_work w
         USING held
         WHERE w.team_id = $1 AND w.run_id = held.id
    )
    UPDATE automation_runs r
       SET status = 'cancelled', completed_at = $3
      FROM held
     WHERE r.team_id = $1 AND r.id = held.id AND r.status = 'running'
"""


class WorkRow(NamedTuple):
    """Work of a run, locked."""

    run_id: UUID
    position: int
    owner: UUID | None
    attempt: int
    due_at: datetime
    event_name: str | None
    waits_from: datetime | None


class RunWait(NamedTuple):
    """A wait of a run."""

    run_id: UUID
    automation_id: UUID
    version: int
    position: int

    @property
    def filter(self) -> tuple[UUID, int, int]:
        """The key of the wait's filter; all runs of a version share it."""
        return self.automation_id, self.version, self.position


class RunData(NamedTuple):
    """JSON of a run."""

    id: UUID
    payload: str
    waited: str | None


class FoundTrigger(NamedTuple):
    """A trigger that an event starts."""

    automation_id: UUID
    trigger_key: str
    version: int
    epoch: int


class NewRun(NamedTuple):
    """A run that is about to be there."""

    id: UUID
    trigger: FoundTrigger
    event_id: UUID
    event_name: str
    contact_id: UUID
    payload: str
    at: datetime


async def lock(db: TeamDb, run_ids: Sequence[UUID]) -> list[LockedRun]:
    return await db.all(LockedRun, LOCK, run_ids)


async def lock_of_contact(db: TeamDb, contact_id: UUID) -> None:
    """Lock all that is running for a contact."""
    await db.values(LOCK_OF_CONTACT, contact_id)


async def epochs(db: TeamDb, automation_ids: Sequence[UUID]) -> dict[UUID, int]:
    rows = await db.source.fetch(EPOCHS, db.team_id, automation_ids)
    return {row["id"]: row["epoch"] for row in rows}


async def reached(db: TeamDb, run_ids: Sequence[UUID]) -> list[tuple[UUID, int]]:
    """Return the steps with rows."""
    rows = await db.source.fetch(REACHED, db.team_id, run_ids)
    return [(row["run_id"], row["position"]) for row in rows]


async def work(db: TeamDb, run_ids: Sequence[UUID]) -> list[WorkRow]:
    return await db.all(WorkRow, WORK, run_ids)


async def waits(db: TeamDb, contact_id: UUID, event_name: str, now: datetime) -> list[RunWait]:
    """Return the waits that an event of that instant may end."""
    return await db.all(RunWait, WAITS, contact_id, event_name, now)


async def mail_waits(
    db: TeamDb, contact_id: UUID, event_name: str, now: datetime, email_id: str
) -> list[RunWait]:
    """Return the waits for what happened to this mail at that instant."""
    return await db.all(RunWait, MAIL_WAITS, contact_id, event_name, now, email_id)


async def carried_out(db: TeamDb, contact_id: UUID) -> UUID | None:
    """Return the run of the step that is being carried out for a contact."""
    found: UUID | None = await db.value(CARRIED_OUT, contact_id)
    return found


async def share(db: TeamDb, run_id: UUID) -> None:
    """Lock the run against changes; waits for who is changing it."""
    await db.value(SHARE, run_id)


async def data(db: TeamDb, run_ids: Sequence[UUID]) -> list[RunData]:
    return await db.all(RunData, DATA, run_ids)


async def waited(db: TeamDb, run_ids: Sequence[UUID]) -> dict[UUID, str]:
    """Return the events that these runs have received, as JSON by run; runs without any are absent."""
    rows = await db.source.fetch(WAITED, db.team_id, run_ids)
    return {row["id"]: row["waited"] for row in rows}


async def mark_contact_deleted(db: TeamDb, run_id: UUID, now: datetime) -> None:
    """Note that the run goes on without its contact, which it is about to delete."""
    await db.run(MARK_CONTACT_DELETED, run_id, now)


async def version(db: TeamDb, automation_id: UUID, number: int) -> StoredGraph | None:
    """Return the graph of a version."""
    return await db.one(StoredGraph, VERSION, automation_id, number)


async def write_steps(db: TeamDb, rows: Sequence[tuple[Any, ...]]) -> None:
    await db.run(WRITE_STEPS, *zip(*rows, strict=True))


async def remove_work(db: TeamDb, rows: Sequence[tuple[UUID, int]]) -> None:
    await db.run(REMOVE_WORK, *zip(*rows, strict=True))


async def add_work(db: TeamDb, rows: Sequence[tuple[Any, ...]]) -> None:
    await db.run(ADD_WORK, *zip(*rows, strict=True))


async def last_order(db: TeamDb, contact_id: UUID) -> datetime | None:
    """Return the place of the last step that is ready for a contact."""
    found: datetime | None = await db.value(LAST_ORDER, contact_id)
    return found


async def write_runs(db: TeamDb, rows: Sequence[tuple[Any, ...]]) -> None:
    await db.run(WRITE_RUNS, *zip(*rows, strict=True))


async def insert_run(db: TeamDb, new: NewRun) -> bool:
    """Insert the run; False where this event has started the trigger before."""
    found = new.trigger
    done = await db.run(
        INSERT_RUN,
        new.id,
        found.automation_id,
        found.version,
        found.epoch,
        new.event_id,
        new.event_name,
        found.trigger_key,
        new.contact_id,
        new.payload,
        new.at,
    )
    return done > 0


async def triggers(db: TeamDb, event_name: str, now: datetime) -> list[FoundTrigger]:
    """Return the triggers that an event accepted at `now` starts. They are locked: none is disabled before
    the commit."""
    return await db.all(FoundTrigger, TRIGGERS, event_name, now)


async def listening(db: TeamDb, names: Sequence[str]) -> set[str]:
    """Return those of these names that start a run or are waited for."""
    return set(await db.values(LISTENING, names))


async def cancel_of_contact(db: TeamDb, contact_id: UUID, now: datetime) -> int:
    """Cancel what runs for a contact that is being deleted; returns how many."""
    return await db.run(CANCEL_OF_CONTACT, contact_id, now)
