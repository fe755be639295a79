"""Undoes imports: removes the contacts that an import made and nobody changed since (contact-imports.md 10).

A job goes through them batch by batch; each batch with its counts and its place is one transaction, so a
process that takes over goes on behind the last one. Undoing again does nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Final
from uuid import UUID

import asyncpg

from pillarbox.contacts.imports import queries, undo_queries
from pillarbox.contacts.imports.jobs import TROUBLE_GAP, UNDONE
from pillarbox.contacts.store import ContactEnds
from pillarbox.kernel.clock import Clock
from pillarbox.kernel.ids import Ids, first_id
from pillarbox.kernel.observability.log import get
from pillarbox.kernel.postgres.database import RETRIED, Connection, TeamDb, transaction
from pillarbox.kernel.process import faults
from pillarbox.kernel.wire.problems import Conflict, NotFound
from pillarbox.kernel.work import job_queries
from pillarbox.kernel.work.jobs import Handler, Job, JobFinished, JobPostponed

log = get("imports")

JOB: Final = "contacts.import_undo"
BATCH: Final = 500
TURN: Final = 40
"""Batches after which other jobs come first."""

SKEW: Final = timedelta(minutes=10)
"""By how much the clocks of two machines may differ: ids hold the time of the machine that made them."""


async def request_undo(db: TeamDb, ids: Ids, import_id: UUID) -> bool:
    """See to it that an import is undone; False where that was asked for before. 404 for an unknown import,
    409 for one that has not ended."""
    if await undo_queries.request(db, import_id, ids.now()):
        await job_queries.hasten(db, ids.new(), JOB, import_id, ids.now())
        return True
    found = await queries.one(db, import_id)
    if found is None:
        raise NotFound("Contact import")
    if found.completed_at is None:
        raise Conflict("The import has not ended yet.")
    return False


@dataclass(frozen=True, slots=True)
class ImportUndo:
    """Does what `request_undo` asked for."""

    pool: asyncpg.Pool
    clock: Clock
    ends: ContactEnds | None

    def handlers(self) -> Mapping[str, Handler]:
        return {JOB: self.run}

    async def run(self, job: Job) -> JobFinished | JobPostponed:
        """Remove contacts of the import, as far as its turn goes."""
        try:
            for _ in range(TURN):
                if not await self._batch(job):
                    return JobFinished(partial(self._ended, job))
                await faults.point("import.undo_committed")
        except (*RETRIED, *UNDONE) as trouble:
            log.warning("imports.undo_trouble", id=job.subject_id, trouble=repr(trouble)[:200])
            return JobPostponed(self.clock.now() + TROUBLE_GAP, "database_trouble")
        return JobPostponed(self.clock.now(), "others_wait")

    async def _batch(self, job: Job) -> bool:
        """Remove a batch of contacts; False where there are no more."""
        async with transaction(self.pool) as conn:
            db = TeamDb(conn, job.team_id)
            at = await undo_queries.lock_position(db, job.subject_id)
            if at is None or not await job_queries.go_on(db, job.id, job.attempt):
                return False
            after = at.undo_after or first_id(at.started_at - SKEW)
            until = first_id(at.completed_at + SKEW)
            made = await undo_queries.next_made(db, job.subject_id, after, until, BATCH)
            if not made:
                return False
            unchanged = await undo_queries.lock_unchanged(db, job.subject_id, made)
            doomed = await undo_queries.without_later_choices(db, unchanged)
            if self.ends is not None:
                for contact_id in doomed:
                    await self.ends.end(db, contact_id)
            await undo_queries.remove(db, doomed)
            await undo_queries.advance(db, job.subject_id, made[-1], len(doomed), len(made) - len(doomed))
            await faults.point("import.undo_written")
        return True

    async def _ended(self, job: Job, conn: Connection) -> None:
        await undo_queries.end(TeamDb(conn, job.team_id), job.subject_id, self.clock.now())
