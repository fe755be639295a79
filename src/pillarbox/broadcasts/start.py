"""How a broadcast begins: is it possible at all, and who gets it (broadcasts.md sections 6 and 8).

The job is due with the broadcast, and runs late where no process was there. It changes `scheduled` to
`queued`, so that from then on the content is frozen and a cancel is final. Then one transaction writes all
recipients and says how many there are, or nothing: a process that dies in the middle leaves nothing behind.
It does not hold the broadcast's row meanwhile, so a cancel does not wait for it and undoes it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Final
from uuid import UUID

import asyncpg

from pillarbox.broadcasts import queries, start_queries
from pillarbox.broadcasts.content import BroadcastContent, hindrance
from pillarbox.broadcasts.plans import plan_start
from pillarbox.broadcasts.plans import queries as plan_queries
from pillarbox.broadcasts.plans.plan import BroadcastPlan
from pillarbox.broadcasts.plans.plan_start import frozen
from pillarbox.broadcasts.prometheus import ENDED, RECIPIENTS
from pillarbox.broadcasts.queries import JOB_START, JOB_WATCH
from pillarbox.broadcasts.start_queries import BegunElsewhere, StartingBroadcast, StartSnapshot
from pillarbox.contacts.conditions.membership import filter_of
from pillarbox.domains.senders import SenderDomain
from pillarbox.emails.broadcast_copies import shared_content
from pillarbox.emails.permitted_senders import PermittedSenders
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.observability.log import get
from pillarbox.kernel.postgres.database import RETRIED, TeamDb
from pillarbox.kernel.process import faults
from pillarbox.kernel.wire.problems import Problem
from pillarbox.kernel.work import job_queries
from pillarbox.kernel.work.jobs import Handler, Job, JobFinished, JobLimit, JobPostponed
from pillarbox.usage.quotas import Quotas, QuotaSpending

log = get("broadcasts")

LIMIT: Final = JobLimit((JOB_START,), running=2, batch=2, pause=0.2)
"""Of their own: a snapshot of millions does not delay other jobs."""

TROUBLE_GAP: Final = timedelta(seconds=5)

KEY_NOT_ACTIVE: Final = "The API key that scheduled it was deleted or suspended before the broadcast began."
SEGMENT_GONE: Final = "The segment was deleted before the broadcast began."
QUOTA_TOO_SMALL: Final = "The quota of the team is smaller than the number of recipients ({recipients:,})."


class _CannotRunError(Exception):
    """The broadcast fails, for this reason."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class BroadcastStart:
    """Begins broadcasts. `wake` tells engines that there are copies to be made."""

    pool: asyncpg.Pool
    ids: Ids
    senders: PermittedSenders
    quotas: Quotas
    wake: Callable[[], None]

    def handlers(self) -> Mapping[str, Handler]:
        return {JOB_START: self.run}

    async def run(self, job: Job) -> JobFinished | JobPostponed:
        db = TeamDb(self.pool, job.team_id)
        try:
            scheduled_at = await start_queries.begin(db, job.subject_id, self.ids.now())
            if scheduled_at is not None:
                return JobPostponed(scheduled_at, "not_due")
            await self._start(db, job.subject_id)
        except RETRIED as trouble:
            log.warning("broadcasts.start_trouble", id=job.subject_id, trouble=repr(trouble)[:200])
            return JobPostponed(self.ids.now() + TROUBLE_GAP, "database_trouble")
        return JobFinished()

    async def _start(self, db: TeamDb, broadcast_id: UUID) -> None:
        starting = await start_queries.starting(db, broadcast_id)
        broadcast = await queries.get(db, broadcast_id)
        if starting is None or broadcast is None:
            return
        try:
            if broadcast.scheduled_at is not None and not await start_queries.is_key_active(db, broadcast_id):
                raise _CannotRunError(KEY_NOT_ACTIVE)
            plan = await plan_queries.get(db, broadcast_id)
            domain = await self._domain(db, broadcast.content, plan)
            async with db.transaction() as inside:
                count = await self._write(inside, broadcast_id, starting, broadcast.content, plan, domain)
        except _CannotRunError as hindered:
            if await start_queries.fail(db, broadcast_id, hindered.reason):
                ENDED.add(1, ("failed",))
                log.warning("broadcasts.failed", id=broadcast_id, reason=hindered.reason)
        except BegunElsewhere:
            log.info("broadcasts.overtaken", id=broadcast_id)
        else:
            log.info("broadcasts.started", id=broadcast_id, recipients=count)
            RECIPIENTS.add(count)
            if count:
                self.wake()
            else:
                ENDED.add(1, ("sent",))

    async def _domain(
        self, db: TeamDb, content: BroadcastContent, plan: BroadcastPlan | None
    ) -> SenderDomain | None:
        """Return the domain that signs the copies; whether the key may use it was asked when it was sent."""
        reason = hindrance(content) or (None if plan is None else plan.hindrance(content))
        if reason is not None:
            raise _CannotRunError(reason)
        try:
            return await self.senders.find(db.team_id, content.domain, None)
        except Problem as problem:
            raise _CannotRunError(problem.message) from None

    async def _write(
        self,
        db: TeamDb,
        broadcast_id: UUID,
        starting: StartingBroadcast,
        content: BroadcastContent,
        plan: BroadcastPlan | None,
        domain: SenderDomain | None,
    ) -> int:
        by_conditions = None
        if starting.segment_id is not None:
            by_conditions = await filter_of(db, starting.segment_id, starting.queued_at)
        count = await start_queries.snapshot(db, broadcast_id, starting, by_conditions)
        await faults.point("broadcast.snapshot")
        if not count and not await self._segment_exists(db, starting.segment_id):
            raise _CannotRunError(SEGMENT_GONE)
        now = self.ids.now()
        await self._check_quota(db, count)
        stamp = self.ids.stamp()
        found = StartSnapshot(
            at=now,
            recipients=count,
            content_id=stamp.id,
            domain_id=domain.id if domain else None,
            domain_name=content.domain,
        )
        if not await start_queries.resolve(db, broadcast_id, found):
            raise BegunElsewhere
        if count:
            await job_queries.restart(db, self.ids.new(), JOB_WATCH, broadcast_id, now, now)
            await shared_content.insert(db, frozen(stamp, content))
            if plan is not None:
                await plan_start.begin(
                    db,
                    self.ids,
                    broadcast_id,
                    content,
                    plan,
                    recipients=count,
                    seconds=start_queries.SNAPSHOT_SECONDS,
                )
        return count

    async def _segment_exists(self, db: TeamDb, segment_id: UUID | None) -> bool:
        return segment_id is not None and await queries.segment_exists(db, segment_id)

    async def _check_quota(self, db: TeamDb, count: int) -> None:
        """Check the quota last, because nothing of the team can be accepted from here to the commit where it
        has a quota."""
        if not count or not await queries.is_metered(db):
            return
        conn, team_id, now = db.connection, db.team_id, self.ids.now()
        await self.quotas.hold(conn, team_id)
        before = await start_queries.promised(db)
        # A copy of another broadcast that is made between two statements is promised to the first and spent
        # to the second. So what fits with more fits, and what does not with less does not.
        while not await self.quotas.fits(conn, QuotaSpending(team_id, now, count + before)):
            after = await start_queries.promised(db)
            if after == before:
                raise _CannotRunError(QUOTA_TOO_SMALL.format(recipients=count))
            before = after
