"""The background jobs of claims: one for each open claim, until the claim is over."""

from __future__ import annotations

from datetime import datetime, timedelta
from uuid import UUID

import asyncpg

from pillarbox.domains.checks.transitions import next_check
from pillarbox.domains.claims import queries
from pillarbox.domains.claims.ending import end
from pillarbox.domains.claims.policy import JOB, LOOK_AGAIN, Status
from pillarbox.domains.claims.queries import DomainClaim
from pillarbox.domains.claims.transfer import ClaimVerdict, Transfers
from pillarbox.kernel.clock import Clock
from pillarbox.kernel.network.dns_answers import DnsQuestion, UncachedDns, settled
from pillarbox.kernel.observability.log import get
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.work.collectors import in_batches
from pillarbox.kernel.work.fair_turns import Turns
from pillarbox.kernel.work.jobs import Job, JobFinished, JobLimit, JobPostponed
from pillarbox.kernel.work.periodic import Periodic

log = get("domains")

KEPT = timedelta(days=90)
"""How long a claim that is over is kept, where it is not the latest of its domain."""

JOB_LIMIT = JobLimit(
    (JOB,), running=16, batch=8, pause=0.25, turns=Turns(10.0, timedelta(minutes=1), tries=1_000_000)
)
"""Claims wait for name servers that their teams have chosen."""

BATCH = 1000


def claim_periodic(pool: asyncpg.Pool, clock: Clock) -> list[Periodic]:
    """Return the periodic jobs of claims."""

    async def collect() -> str:
        async def some() -> int:
            return await queries.remove_forgotten(pool, clock.now() - KEPT, BATCH)

        return f"{await in_batches(some)} old claims"

    return [Periodic("domains.claims", timedelta(days=1), collect)]


class ClaimJudge:
    """The handler of job kind `domain.claim`; its subject is the claim."""

    def __init__(self, pool: asyncpg.Pool, clock: Clock, dns: UncachedDns, transfers: Transfers) -> None:
        self._pool = pool
        self._clock = clock
        self._dns = dns
        self._transfers = transfers

    async def run(self, job: Job) -> JobFinished | JobPostponed:
        started = self._clock.now()
        claim = await queries.get(TeamDb(self._pool, job.team_id), job.subject_id)
        if claim is None:
            return JobFinished()
        if claim.status is Status.PENDING:
            waiting = await self._prove(job.team_id, claim, started)
            if waiting is not None:
                return waiting
        return await self._settle(job, self._clock.now())

    async def _prove(
        self, team_id: UUID, claim: DomainClaim, started: datetime
    ) -> JobFinished | JobPostponed | None:
        """Look for the proof, and return None once it is accepted."""
        if started >= claim.expires_at:
            async with TeamDb(self._pool, team_id).transaction() as inner:
                if claim.domain_id is not None:
                    await end(inner, claim.id, claim.domain_id, Status.EXPIRED)
            return JobFinished()
        if claim.checking_since is None:
            return JobPostponed(claim.expires_at, "nobody asked for a check yet")
        answers = await self._dns.ask(DnsQuestion(claim.name, "TXT"))
        if any(claim.token in answer.values for answer in answers):
            await queries.mark_verified(TeamDb(self._pool, team_id), claim.id)
            return None
        due = min(next_check(claim.checking_since, started), claim.expires_at)
        return JobPostponed(due, settled(answers).detail or "the TXT record is not there")

    async def _settle(self, job: Job, now: datetime) -> JobFinished | JobPostponed:
        try:
            verdict = await self._transfers.settle(job.team_id, job.subject_id, now)
        except asyncpg.IntegrityConstraintViolationError:
            log.exception("domains.transfer_failed", claim=job.subject_id)
            await self._transfers.give_up(job.team_id, job.subject_id)
            return JobFinished()
        if verdict is ClaimVerdict.BLOCKED:
            return JobPostponed(now + LOOK_AGAIN, "a safety check forbids the transfer")
        return JobFinished()
