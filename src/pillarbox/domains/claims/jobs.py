"""The background door of claims: one job for each open claim, until the claim is over."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime
from uuid import UUID

import asyncpg

from pillarbox.domains.claims import queries
from pillarbox.domains.claims.ending import end
from pillarbox.domains.claims.policy import LOOK_AGAIN, Status
from pillarbox.domains.claims.queries import Claim
from pillarbox.domains.claims.transfer import Transfers, Verdict
from pillarbox.domains.schedule import next_check
from pillarbox.kernel.clock import Clock
from pillarbox.kernel.db import TeamDb
from pillarbox.kernel.dns import Answer
from pillarbox.kernel.log import get
from pillarbox.kernel.work import Finished, Job, Postponed

log = get("domains")

AskTxt = Callable[[str], Awaitable[Answer[str]]]
"""The TXT records of a name, from DNS as it is now."""


class Claiming:
    """The handler of job kind `domain.claim`; its subject is the claim."""

    def __init__(self, pool: asyncpg.Pool, clock: Clock, ask: AskTxt, transfers: Transfers) -> None:
        self._pool = pool
        self._clock = clock
        self._ask = ask
        self._transfers = transfers

    async def run(self, job: Job) -> Finished | Postponed:
        started = self._clock.now()
        claim = await queries.get(TeamDb(self._pool, job.team_id), job.subject_id)
        if claim is None:
            return Finished()
        if claim.status is Status.PENDING:
            waiting = await self._prove(job.team_id, claim, started)
            if waiting is not None:
                return waiting
        return await self._settle(job, self._clock.now())

    async def _prove(self, team_id: UUID, claim: Claim, started: datetime) -> Finished | Postponed | None:
        """None once the proof is accepted."""
        if started >= claim.expires_at:
            async with TeamDb(self._pool, team_id).transaction() as inner:
                if claim.domain_id is not None:
                    await end(inner, claim.id, claim.domain_id, Status.EXPIRED)
            return Finished()
        if claim.checking_since is None:
            return Postponed(claim.expires_at, "nobody asked for a check yet")
        answer = await self._ask(claim.name)
        db = TeamDb(self._pool, team_id)
        if claim.token in answer.records:
            await queries.prove(db, claim.id)
            return None
        # Read once more: whoever asked for a check meanwhile wants one that begins after that.
        now = await queries.get(db, claim.id)
        if now is None or now.checking_since is None:
            return Finished()
        due = min(next_check(now.checking_since, started), now.expires_at)
        return Postponed(due, answer.detail or "the TXT record is not there")

    async def _settle(self, job: Job, now: datetime) -> Finished | Postponed:
        try:
            verdict = await self._transfers.settle(job.team_id, job.subject_id, now)
        except asyncpg.IntegrityConstraintViolationError:
            log.exception("domains.transfer_failed", claim=job.subject_id)
            await self._transfers.give_up(job.team_id, job.subject_id)
            return Finished()
        if verdict is Verdict.BLOCKED:
            return Postponed(now + LOOK_AGAIN, "a safety check forbids the transfer")
        return Finished()
