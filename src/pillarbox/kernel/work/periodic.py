"""Periodic jobs: retention, collectors and the like.

Each is one row of `jobs`, under the nil team, that never finishes but is postponed until it is due again. So
one process of the whole installation runs it at a time, and a restart does not run it again. When a process
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
from pillarbox.kernel.postgres.database import Source, TeamDb
from pillarbox.kernel.work import job_queries
from pillarbox.kernel.work.job_queries import NewJob, add_several
from pillarbox.kernel.work.jobs import Handler, Job, JobPostponed

log = get("jobs")

NO_TEAM = UUID(int=0)
LOOK = timedelta(seconds=45)
"""Less than a minute with all that a job may wait for otherwise: the poll of jobs, and the job itself."""

SOMETHING = re.compile("[1-9]")
"""In what was done: a count that is not 0."""


@dataclass(frozen=True, slots=True)
class Periodic:
    """Runs `work` at the interval `every`. What `work` returns is stored in the job's row and logged (what
    counts nothing only for debugging), unless the job is `quiet` because it runs too often for that. `work`
    uses small transactions of its own, so that an interruption costs nothing.

    `depends` reads what the work depends on and somebody may change, such as the retentions of teams. It is
    looked at every `LOOK`, and where it is not what it was when this process last did the work, the work is
    done at once. A process that has just started has not done it yet."""

    kind: str
    every: timedelta
    work: Callable[[], Awaitable[str]]
    quiet: bool = False
    depends: Callable[[], Awaitable[object]] | None = None


def handlers(periodic_jobs: Sequence[Periodic], clock: Clock) -> dict[str, Handler]:
    """Return the handlers of periodic jobs, by kind."""
    return {found.kind: _handler(found, clock) for found in periodic_jobs}


async def ensure(source: Source, periodic_jobs: Sequence[Periodic], ids: Ids, clock: Clock) -> None:
    """Insert the missing rows, due at once, and bring forward those that wait longer than their interval
    (`bring_forward`)."""
    if periodic_jobs:
        now = clock.now()
        jobs = [
            NewJob(team_id=NO_TEAM, id=ids.new(), kind=periodic.kind, subject_id=NO_TEAM, due_at=now)
            for periodic in periodic_jobs
        ]
        await add_several(source, jobs)
        await bring_forward(source, periodic_jobs, now)


async def bring_forward(source: Source, periodic_jobs: Sequence[Periodic], now: datetime) -> int:
    """Make periodic jobs due that are further ahead than their interval; returns how many. A clock that was a
    year ahead has postponed them by a year."""
    kinds = [found.kind for found in periodic_jobs]
    turns = [LOOK if found.depends else found.every for found in periodic_jobs]
    return await job_queries.bring_forward(TeamDb(source, NO_TEAM), kinds, turns, now)


def _handler(periodic: Periodic, clock: Clock) -> Handler:
    if periodic.depends is None:
        return _Run(periodic, clock).work
    return _Run(periodic, clock).look


class _Run:
    """Does the work of a periodic job in this process."""

    def __init__(self, periodic: Periodic, clock: Clock) -> None:
        self._found = periodic
        self._clock = clock
        self._known: object = None
        self._next: datetime | None = None
        self._done = ""

    async def work(self, _: Job) -> JobPostponed:
        return JobPostponed(self._clock.now() + self._found.every, await self._work())

    async def look(self, _: Job) -> JobPostponed:
        """Work where it is time, or where something has changed that the work depends on."""
        assert self._found.depends is not None
        known = await self._found.depends()
        # A clock that was set back leaves a time that is too far ahead.
        waits = self._next is not None and timedelta(0) < self._next - self._clock.now() <= self._found.every
        if known != self._known or not waits:
            self._done = await self._work()
            self._known, self._next = known, self._clock.now() + self._found.every
        return JobPostponed(self._clock.now() + LOOK, self._done)

    async def _work(self) -> str:
        done = await self._found.work()
        if not self._found.quiet:
            write = log.info if SOMETHING.search(done) else log.debug
            write("jobs.periodic", kind=self._found.kind, done=done)
        return done
