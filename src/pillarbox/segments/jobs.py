"""Removing the members of a deleted segment, a few at a time (DUR-15)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import asyncpg

from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.work.collectors import in_batches
from pillarbox.kernel.work.jobs import Handler, Job, JobFinished, JobLimit
from pillarbox.segments import queries
from pillarbox.segments.queries import JOB_REMOVE

BATCH = 1000
LIMIT: Final = JobLimit((JOB_REMOVE,), running=2, batch=2, pause=0.1)
"""Of their own: however many large segments a team deletes, other jobs run beside them."""


class MemberRemoval:
    """Interrupted anywhere, it goes on with what is left."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool

    def handlers(self) -> Mapping[str, Handler]:
        return {JOB_REMOVE: self.remove}

    async def remove(self, job: Job) -> JobFinished:
        db = TeamDb(self._pool, job.team_id)

        async def some() -> int:
            return await queries.remove_members(db, job.subject_id, BATCH)

        await in_batches(some)
        return JobFinished()
