"""Looks after a broadcast while it is being sent: it ends when nobody waits, and stops at its limits.

Each broadcast has a job of its own for that, from the transaction that writes its recipients until it is
over. So nothing is looked at where no broadcast is being sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Final
from uuid import UUID

import asyncpg

from pillarbox.broadcasts import copy_counts_queries, watch_queries
from pillarbox.broadcasts.limits import BrakeLimits, reason_to_pause
from pillarbox.broadcasts.plans.stages import PlanStages
from pillarbox.broadcasts.prometheus import ENDED, PAUSED
from pillarbox.broadcasts.queries import JOB_WATCH
from pillarbox.broadcasts.watch_queries import RunningBroadcast
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.observability.log import get
from pillarbox.kernel.postgres.database import RETRIED, TeamDb
from pillarbox.kernel.work.jobs import Handler, Job, JobFinished, JobLimit, JobPostponed

log = get("broadcasts")

LIMIT: Final = JobLimit((JOB_WATCH,), running=4, batch=4, pause=0.2)
LOOK_EVERY: Final = timedelta(seconds=2)
FIRST: Final = UUID(int=0)
MOST_REACHED: Final = 10_000
"""Broadcasts that are remembered: the job of one may end in another process."""


class Watch:
    """Remembers how far each broadcast has come: rows that were done then are done now."""

    def __init__(self, pool: asyncpg.Pool, ids: Ids, limits: BrakeLimits) -> None:
        self._pool = pool
        self._ids = ids
        self._limits = limits
        self._stages = PlanStages(ids, limits)
        self._reached: dict[UUID, UUID] = {}

    def handlers(self) -> Mapping[str, Handler]:
        return {JOB_WATCH: self.run}

    async def run(self, job: Job) -> JobFinished | JobPostponed:
        try:
            is_over = await self._look(TeamDb(self._pool, job.team_id), job.subject_id)
        except RETRIED as trouble:
            log.warning("broadcasts.watch_trouble", id=job.subject_id, trouble=repr(trouble)[:200])
            is_over = False
        if is_over:
            self._reached.pop(job.subject_id, None)
            return JobFinished()
        return JobPostponed(self._ids.now() + LOOK_EVERY, "being_sent")

    async def _look(self, db: TeamDb, broadcast_id: UUID) -> bool:
        """Return whether there is nothing more to look after."""
        running = await watch_queries.running(db, broadcast_id)
        if running is None:
            return True
        reached = self._reached.get(broadcast_id, FIRST)
        waiting = await watch_queries.next_waiting(db, broadcast_id, reached)
        if waiting is None:
            # A paused one is not over: copies that are made may wait for another attempt.
            if not await watch_queries.finish(db, broadcast_id, self._ids.now()):
                return False
            ENDED.add(1, ("sent",))
            log.info("broadcasts.sent", id=broadcast_id)
            return True
        if len(self._reached) >= MOST_REACHED:
            self._reached.clear()
        self._reached[broadcast_id] = waiting
        if running.paused_at is None:
            await self._brake(db, broadcast_id, running)
            if running.stage not in (None, "rest"):
                await self._stages.move_on(db, broadcast_id, running)
        return False

    async def _brake(self, db: TeamDb, broadcast_id: UUID, running: RunningBroadcast) -> None:
        if running.resumed_at is None:
            so_far = await copy_counts_queries.since_start(db, broadcast_id, running.queued_at)
        else:
            so_far = await copy_counts_queries.lately(db, broadcast_id, running.resumed_at)
        reason = reason_to_pause(so_far, self._limits)
        if reason and await watch_queries.pause(db, broadcast_id, reason, self._ids.now()):
            PAUSED.add()
            log.warning("broadcasts.paused", id=broadcast_id, reason=reason)
