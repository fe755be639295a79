"""The job that erases a person, step by step (docs/decisions/0182).

A step looks at some hundred rows and is one transaction with the place of the next one, so whoever takes
over goes on
behind the last that is committed. Each step changes what still names the person and nothing else: done twice
it
comes to the same. Where mail is under way, everything is looked at once more a little later.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

import asyncpg

from pillarbox.kernel.clock import Clock
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.personal_data import DataSubject, EraseStep
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.process import faults
from pillarbox.kernel.storage import blob_removal
from pillarbox.kernel.storage.blobs import BlobStore
from pillarbox.kernel.wire.email_address import EmailAddress
from pillarbox.kernel.work import job_queries
from pillarbox.kernel.work.jobs import Handler, Job, JobFinished, JobLimit, JobPostponed
from pillarbox.personal_data import queries
from pillarbox.personal_data.queries import BEHIND_LAST, JOB, ErasurePlace
from pillarbox.suppressions.erased_addresses import ErasedAddresses

LIMIT: Final = JobLimit((JOB,), running=1, batch=1, pause=0.2)
"""One at a time in each process: it reads all that a team has."""

LOGGED_WITHIN: Final = timedelta(seconds=2)
"""After so long the line of a request is in the log of requests."""

AGAIN_AFTER: Final = (timedelta(seconds=10), timedelta(minutes=1), timedelta(minutes=15))
"""Pauses before everything is looked at once more; the last one again and again."""


@dataclass(frozen=True, slots=True)
class Erasure:
    """One part of the data, and what erases it."""

    name: str
    erase: EraseStep


async def begin(
    db: TeamDb, ids: Ids, hash_: bytes, address: EmailAddress, contact_id: UUID | None, now: datetime
) -> UUID:
    """Begin the erasure of an address with this hash, in the caller's transaction; returns its id."""
    erasure_id = await queries.begin(db, ids.new(), hash_, address.address, address.given, contact_id, now)
    # A job that goes on with it ends, so that its pauses are short again. Lines of requests that name the
    # address are written beside this, that of this request among them.
    await job_queries.remove(db, erasure_id)
    await job_queries.add(db, ids.new(), JOB, erasure_id, now + LOGGED_WITHIN)
    return erasure_id


class Erasures:
    """Begins erasures and carries them out. `parts` are in the order in which they are erased."""

    def __init__(
        self,
        pool: asyncpg.Pool,
        clock: Clock,
        ids: Ids,
        blobs: BlobStore,
        erased: ErasedAddresses,
        parts: Sequence[Erasure],
    ) -> None:
        self._pool = pool
        self._clock = clock
        self._ids = ids
        self._blobs = blobs
        self._erased = erased
        self._parts = parts

    def handlers(self) -> Mapping[str, Handler]:
        return {JOB: self.run}

    async def begin(self, db: TeamDb, address: EmailAddress, contact_id: UUID | None) -> UUID:
        """Begin the erasure of an address, in the caller's transaction: from its commit on no mail goes to
        it. Returns the id of the erasure."""
        hash_ = await self._erased.hash_of(db.team_id, address.address)
        return await begin(db, self._ids, hash_, address, contact_id, self._clock.now())

    async def run(self, job: Job) -> JobFinished | JobPostponed:
        """Erase a person, as far as it goes now."""
        db = TeamDb(self._pool, job.team_id)
        row = await queries.by_id(db, job.subject_id)
        if row is None or row.address is None:
            return JobFinished()
        person = DataSubject.of(row.address, row.given, row.contact_id)
        while await self._step(db, job, person):
            await faults.point("personal_data.step_committed")
        row = await queries.by_id(db, job.subject_id)
        if row is None or row.completed_at is not None:
            return JobFinished()
        await queries.begin_again(db, job.subject_id)
        pause = AGAIN_AFTER[min(job.tries, len(AGAIN_AFTER) - 1)]
        return JobPostponed(self._clock.now() + pause, f"mail_under_way: {row.waiting}")

    async def _step(self, db: TeamDb, job: Job, person: DataSubject) -> bool:
        """Do the next step; False behind the last one. Rests as long as the step took, so that the database
        is at most half busy with it."""
        started, erasure_id = time.monotonic(), job.subject_id
        async with db.transaction() as held:
            at = await queries.hold(held, erasure_id)
            if at is None or not await job_queries.go_on(held, job.id, job.attempt):
                return False
            names = [part.name for part in self._parts]
            index = names.index(at.part) if at.part in names else 0
            if at.part == BEHIND_LAST:
                return False
            now = self._clock.now()
            rows = await self._parts[index].erase(held, person, at.place, now)
            following = ErasurePlace(self._parts[index].name, rows.place or "")
            if rows.place is None:
                following = ErasurePlace(names[index + 1] if index + 1 < len(names) else BEHIND_LAST, "")
            await queries.advance(held, erasure_id, following, rows.rows, rows.waiting)
            if following.part == BEHIND_LAST:
                row = await queries.by_id(held, erasure_id)
                if row is not None and not row.waiting:
                    await queries.end(held, erasure_id, now)
                    # With it, so that who asks for the erasure again from now on begins a job of their own.
                    await job_queries.remove(held, erasure_id)
            await faults.point("personal_data.step_written")
        await blob_removal.remove(self._pool, self._blobs, rows.blobs, "personal_data")
        await asyncio.sleep(time.monotonic() - started)
        return following.part != BEHIND_LAST
