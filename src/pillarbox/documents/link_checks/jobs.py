"""The job that checks one link.

There is one job for each link and not for each mail: so teams take turns at hosts by the rules of
`kernel.work.fair_turns`, a process that dies loses one answer, and two mails with one link ask once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

import asyncpg

from pillarbox.documents.link_checks import queries
from pillarbox.documents.link_checks.link_request import LinkResult, asked
from pillarbox.documents.link_checks.queries import JOB, WaitingLink
from pillarbox.kernel.clock import Clock
from pillarbox.kernel.network.outbound import Outbound
from pillarbox.kernel.postgres.database import Connection, TeamDb
from pillarbox.kernel.work.collectors import in_batches
from pillarbox.kernel.work.fair_turns import Turns
from pillarbox.kernel.work.jobs import EndingHandler, Handler, Job, JobFinished, JobLimit
from pillarbox.kernel.work.periodic import Periodic

LIMIT: Final = JobLimit(
    (JOB,),
    running=10,
    batch=10,
    pause=0.25,
    turns=Turns(slot_timeout=5.0, gap=timedelta(seconds=10), tries=2),
)
"""Links that one process asks for at once. A single team has half of them, and so has a single host."""

LONGEST_WAIT: Final = timedelta(minutes=10)
"""A link that waits longer is not asked for any more: this bounds the check of a mail."""

KEPT: Final = timedelta(days=7)
BATCH: Final = 1000


@dataclass(frozen=True, slots=True)
class LinkCheckJobs:
    """Checks links, and removes old results."""

    pool: asyncpg.Pool
    clock: Clock
    outbound: Outbound

    def handlers(self) -> Mapping[str, Handler]:
        return {JOB: EndingHandler(self.run, self.give_up)}

    def periodic(self) -> list[Periodic]:
        return [Periodic("documents.link_check_retention", timedelta(hours=1), self.collect)]

    async def run(self, job: Job) -> JobFinished:
        """Ask for the link, with no transaction open."""
        link = await queries.waiting(TeamDb(self.pool, job.team_id), job.subject_id)
        if link is None:
            return JobFinished()
        if self.clock.now() - link.asked_at > LONGEST_WAIT:
            return self._finished(job, link, LinkResult("unreachable", "too_late"))
        result = await asked(self.outbound, link.url)
        return self._finished(job, link, result)

    async def give_up(self, job: Job) -> JobFinished:
        """End the check: three processes have died over it."""
        link = await queries.waiting(TeamDb(self.pool, job.team_id), job.subject_id)
        if link is None:
            return JobFinished()
        return self._finished(job, link, LinkResult("unreachable", "internal_error"))

    async def collect(self) -> str:
        """Remove results that nobody has asked for since long; say how many."""
        before = self.clock.now() - KEPT

        async def some() -> int:
            return await queries.remove_old(self.pool, before, BATCH)

        return f"{await in_batches(some)} checks of links"

    def _finished(self, job: Job, link: WaitingLink, result: LinkResult) -> JobFinished:
        async def settle(conn: Connection) -> None:
            await queries.settle(TeamDb(conn, job.team_id), link, result, self.clock.now())

        return JobFinished(settle)
