"""The job that ends what is left of deleted properties (contacts.md 4, docs/decisions/0060)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import asyncpg

from pillarbox.contact_properties import queries
from pillarbox.contact_properties.defining import JOB_REMOVE
from pillarbox.contacts.property_values import BATCH, remove_values
from pillarbox.kernel.postgres.database import Connection, TeamDb
from pillarbox.kernel.work.jobs import Handler, Job, JobFinished, JobLimit

LIMIT: Final = JobLimit((JOB_REMOVE,), running=2, batch=1, pause=0.1)
"""A team with a million contacts and many deleted properties does not stand in the way of other work."""


@dataclass(frozen=True, slots=True)
class ValueRemoval:
    """Takes the values of all deleted properties of a team from its contacts, then their definitions go."""

    pool: asyncpg.Pool
    batch: int = BATCH

    def handlers(self) -> dict[str, Handler]:
        return {JOB_REMOVE: self.remove}

    async def remove(self, job: Job) -> JobFinished:
        """Walk the contacts once for all properties that are deleted by now: the jobs of the others then find
        nothing to do."""
        db = TeamDb(self.pool, job.team_id)
        found = await queries.hidden(db)
        if job.subject_id not in {one.id for one in found}:
            return JobFinished()
        await remove_values(db, [one.number for one in found], self.batch)

        async def forget(conn: Connection) -> None:
            await queries.remove(TeamDb(conn, job.team_id), [one.id for one in found])

        return JobFinished(forget)
