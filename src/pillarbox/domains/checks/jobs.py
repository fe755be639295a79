"""The background door of domains: checks of DNS. Kind `domain.check`, at most one job for each domain; its
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
from pillarbox.domains.checks.outcome import CheckOutcome, Seen
from pillarbox.domains.checks.start import JOB
from pillarbox.kernel.clock import Clock
from pillarbox.kernel.postgres.database import Connection, TeamDb, after_commit
from pillarbox.kernel.work.jobs import Decided, Finished, Job, JobLimit, Postponed

MOST_RUNNING: Final = 200
"""Most of them may wait for servers that stay silent."""

BATCH: Final = 3
EACH_SECOND: Final = 120
"""Checks that the processes of a host begin together, and no more: thousands that are due at once must not be
felt by those who send mail meanwhile."""


def lane(processes: int) -> JobLimit:
    """The share of one of so many processes."""
    return JobLimit((JOB,), running=MOST_RUNNING, batch=BATCH, pause=BATCH * processes / EACH_SECOND)


class Checking:
    """The handler. `forget` is called for a team whose domain has changed."""

    def __init__(
        self,
        pool: asyncpg.Pool,
        clock: Clock,
        looker: Inspector,
        passes: CheckOutcome,
        chance: Callable[[], float],
        forget: Callable[[UUID], None],
    ) -> None:
        self._pool = pool
        self._clock = clock
        self._looker = looker
        self._passes = passes
        self._chance = chance
        self._forget = forget

    async def run(self, job: Job) -> Finished | Decided:
        """Look with no transaction open, then write what follows, with the job, in one."""
        began = self._clock.now()
        db = TeamDb(self._pool, job.team_id)
        domain = await queries.get(db, job.subject_id)
        if domain is None or domain.claim_id is not None:
            return Finished()
        rows = await check_queries.keys(db, domain.id)
        wanted = wanted_of(domain, rows, self._passes.shop.here, proof=True)
        seen = Seen(began, await self._looker.look(wanted))
        return Decided(partial(self._settle, job, domain.name, seen))

    async def _settle(self, job: Job, name: str, seen: Seen, conn: Connection) -> Finished | Postponed:
        db = TeamDb(conn, job.team_id)
        due = await self._passes.settle(db, name, job.subject_id, seen, self._clock.now(), self._chance())
        after_commit(conn, partial(self._forget, job.team_id))
        return Finished() if due is None else Postponed(due, "the next look at DNS")
