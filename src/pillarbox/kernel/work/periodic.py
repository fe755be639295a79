"""Periodic jobs: retention, collectors and the like.

Each is one row of `jobs`, under the nil team, that never finishes but is postponed until it is due again. So
one process of the whole installation runs it at a time, a restart does not run it again, and when a process
dies in the middle another one takes it over.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from pillarbox.kernel.clock import Clock
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.observability.log import get
from pillarbox.kernel.postgres.database import Source
from pillarbox.kernel.work.jobs import Handler, Job, Postponed

log = get("jobs")

NO_TEAM = UUID(int=0)

SOMETHING = re.compile("[1-9]")
"""In what was done: a count that is not 0."""

ENSURE = """
    INSERT INTO jobs (team_id, id, kind, subject_id, due_at, created_at)
    SELECT $1, k.id, k.kind, $1, $4, $4
      FROM unnest($2::uuid[], $3::text[]) AS k (id, kind)
    ON CONFLICT (team_id, kind, subject_id) DO NOTHING
"""

BRING_FORWARD = """
    UPDATE jobs j
       SET due_at = $4::timestamptz
      FROM unnest($2::text[], $3::interval[]) AS k (kind, every)
     WHERE j.team_id = $1 AND j.kind = k.kind AND j.owner IS NULL AND j.due_at > $4::timestamptz + k.every
"""


@dataclass(frozen=True, slots=True)
class Periodic:
    """Runs `work` at the interval `every`. What `work` returns is stored in the job's row and logged (what
    counts nothing only for debugging), unless the job is `quiet` because it runs too often for that. `work`
    uses small transactions of its own, so that an interruption costs nothing."""

    kind: str
    every: timedelta
    work: Callable[[], Awaitable[str]]
    quiet: bool = False


def handlers(periodic_jobs: Sequence[Periodic], clock: Clock) -> dict[str, Handler]:
    """The handlers of periodic jobs, by kind."""
    return {found.kind: _handler(found, clock) for found in periodic_jobs}


async def ensure(source: Source, periodic_jobs: Sequence[Periodic], ids: Ids, clock: Clock) -> None:
    """Insert the missing rows, due at once, and bring forward those that wait longer than their interval
    (`bring_forward`)."""
    if periodic_jobs:
        kinds = [found.kind for found in periodic_jobs]
        await source.execute(ENSURE, NO_TEAM, [ids.new() for _ in kinds], kinds, clock.now())
        await bring_forward(source, periodic_jobs, clock.now())


async def bring_forward(source: Source, periodic_jobs: Sequence[Periodic], now: datetime) -> int:
    """Make periodic jobs due that are further ahead than their interval; returns how many. A clock that was a
    year ahead has postponed them by a year."""
    kinds = [found.kind for found in periodic_jobs]
    turns = [found.every for found in periodic_jobs]
    done: str = await source.execute(BRING_FORWARD, NO_TEAM, kinds, turns, now)
    return int(done.rsplit(" ", 1)[-1])


def _handler(found: Periodic, clock: Clock) -> Handler:
    async def run(_: Job) -> Postponed:
        done = await found.work()
        if not found.quiet:
            write = log.info if SOMETHING.search(done) else log.debug
            write("jobs.periodic", kind=found.kind, done=done)
        return Postponed(clock.now() + found.every, done)

    return run
