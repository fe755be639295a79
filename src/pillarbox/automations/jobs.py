"""Ending what is left of automations that were stopped or deleted, some runs at a time (DUR-15)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import asyncpg

from pillarbox.automations import ending_queries
from pillarbox.automations.queries import JOB_END
from pillarbox.kernel.clock import Clock
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.work.collectors import in_batches
from pillarbox.kernel.work.jobs import Handler, Job, JobFinished, JobLimit

BATCH: Final = 1000
LIMIT: Final = JobLimit((JOB_END,), running=2, batch=2, pause=0.1)
"""Of their own: however many runs there are, other jobs run beside them."""


@dataclass(frozen=True, slots=True)
class AutomationEnding:
    """Interrupted anywhere, it goes on with what is left."""

    pool: asyncpg.Pool
    clock: Clock

    def handlers(self) -> Mapping[str, Handler]:
        return {JOB_END: self.end}

    async def end(self, job: Job) -> JobFinished:
        db, automation_id = TeamDb(self.pool, job.team_id), job.subject_id
        epoch = await ending_queries.epoch_of(db, automation_id)
        if epoch is None:
            return JobFinished()

        async def cancelled() -> int:
            return await ending_queries.cancel_runs(db, automation_id, epoch, BATCH, self.clock.now())

        async def removed() -> int:
            return await ending_queries.remove_runs(db, automation_id, BATCH)

        await in_batches(cancelled)
        if await ending_queries.is_deleted(db, automation_id):
            await in_batches(removed)
            await ending_queries.remove(db, automation_id)
        return JobFinished()
