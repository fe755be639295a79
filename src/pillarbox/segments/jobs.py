"""Removing the members of a deleted segment, a few at a time (DUR-15)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import asyncpg

from pillarbox.kernel.work.collectors import changed, in_batches
from pillarbox.kernel.work.jobs import Handler, Job, JobFinished, JobLimit
from pillarbox.segments.queries import JOB_REMOVE

BATCH = 1000
LIMIT: Final = JobLimit((JOB_REMOVE,), running=2, batch=2, pause=0.1)
"""Of their own: however many large segments a team deletes, other jobs run beside them."""

REMOVE_MEMBERS: Final = """
    WITH next AS MATERIALIZED (
        SELECT contact_id
          FROM segment_members
         WHERE team_id = $1 AND segment_id = $2
         ORDER BY contact_id
         LIMIT $3
    )
    DELETE FROM segment_members m
     USING next
     WHERE m.team_id = $1 AND m.segment_id = $2 AND m.contact_id = next.contact_id
"""


class MemberRemoval:
    """Interrupted anywhere, it goes on with what is left."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool

    def handlers(self) -> Mapping[str, Handler]:
        return {JOB_REMOVE: self.remove}

    async def remove(self, job: Job) -> JobFinished:
        async def some() -> int:
            return changed(await self._pool.execute(REMOVE_MEMBERS, job.team_id, job.subject_id, BATCH))

        await in_batches(some)
        return JobFinished()
