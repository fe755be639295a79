"""The background job that checks a domain in DNS. Kind `domain.check`, at most one job for each domain; its
subject is the domain."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final
from uuid import UUID

import asyncpg

from pillarbox.domains import queries
from pillarbox.domains.checks import check_queries
from pillarbox.domains.checks.inspection import Inspector, wanted_of
from pillarbox.domains.checks.outcome import CheckOutcome, Inspection
from pillarbox.domains.checks.start import JOB
from pillarbox.kernel.clock import Clock
from pillarbox.kernel.postgres.database import Connection, TeamDb, after_commit
from pillarbox.kernel.work.jobs import DecidedAtSettle, Job, JobFinished, JobLimit, JobPostponed

MOST_RUNNING: Final = 200
"""Most of them may wait for servers that do not answer."""

BATCH: Final = 3
EACH_SECOND: Final = 120
"""Checks that all processes of a host together begin in a second, so that thousands that are due at once do
not slow down sending."""


def job_limit(processes: int) -> JobLimit:
    """Return the job limit of one of so many processes."""
    return JobLimit((JOB,), running=MOST_RUNNING, batch=BATCH, pause=BATCH * processes / EACH_SECOND)


class DomainChecker:
    """The handler. `forget` is called for a team whose domain has changed."""

    def __init__(
        self,
        pool: asyncpg.Pool,
        clock: Clock,
        inspector: Inspector,
        outcome: CheckOutcome,
        chance: Callable[[], float],
        forget: Callable[[UUID], None],
    ) -> None:
        self._pool = pool
        self._clock = clock
        self._inspector = inspector
        self._outcome = outcome
        self._chance = chance
        self._forget = forget

    async def run(self, job: Job) -> JobFinished | DecidedAtSettle:
        """Query DNS with no transaction open, then write the outcome with the job in one transaction."""
        began = self._clock.now()
        db = TeamDb(self._pool, job.team_id)
        domain = await queries.get(db, job.subject_id)
        if domain is None or domain.claim_id is not None:
            return JobFinished()
        rows = await check_queries.keys(db, domain.id)
        wanted = wanted_of(domain, rows, self._outcome.context.here, proof=True)
        inspection = Inspection(began, await self._inspector.inspect(wanted))
        return DecidedAtSettle(partial(self._settle, job, domain.name, inspection))

    async def _settle(
        self, job: Job, name: str, inspection: Inspection, conn: Connection
    ) -> JobFinished | JobPostponed:
        db = TeamDb(conn, job.team_id)
        due = await self._outcome.settle(
            db, name, job.subject_id, inspection, self._clock.now(), self._chance()
        )
        after_commit(conn, partial(self._forget, job.team_id))
        return JobFinished() if due is None else JobPostponed(due, "the next look at DNS")
