"""Purges threads that have been in the trash for 30 days (inboxes.md section 8).

One transaction for each thread: it takes the lock of the inbox, and the thread where it is still over its
time. So a thread that somebody brings back at the same moment is either brought back or purged, whole. Of a
thread with many messages the first `AT_ONCE` go with it, and a job removes the others, as many at a time: no
thread has them any more, so nobody sees them (docs/decisions/0091). Their emails are kept from then on as
long as any other email. Nobody is told.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final
from uuid import UUID

import asyncpg

from pillarbox.emails.inbox_mail import messages as inbox_mail
from pillarbox.inboxes.locking import lock
from pillarbox.inboxes.received_mail import ReceivedMailSource
from pillarbox.inboxes.threads import purge_queries
from pillarbox.inboxes.threads.purge_queries import JOB_REMOVE, DueThread, GoneMessage
from pillarbox.inboxes.trust import queries as trust_queries
from pillarbox.kernel.clock import Clock
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.storage import blob_removal
from pillarbox.kernel.storage.blobs import BlobStore
from pillarbox.kernel.work import job_queries
from pillarbox.kernel.work.collectors import in_batches
from pillarbox.kernel.work.jobs import Handler, Job, JobFinished, JobLimit
from pillarbox.kernel.work.periodic import Periodic

EVERY: Final = timedelta(minutes=15)
BATCH: Final = 200
AT_ONCE: Final = 500
"""Messages that are removed in one transaction."""

NOT_NOW: Final = (asyncpg.LockNotAvailableError, asyncpg.DeadlockDetectedError)
"""Somebody works on the inbox for long: its thread is purged the next time."""

LIMIT: Final = JobLimit((JOB_REMOVE,), running=1, batch=1, pause=0.1)

FIRST: Final = (datetime(1, 1, 1, tzinfo=UTC), UUID(int=0))
"""Before the first message of any thread."""

START: Final = DueThread(UUID(int=0), UUID(int=0), datetime(1, 1, 1, tzinfo=UTC))


class ThreadPurge:
    """Removes threads whose time in the trash is over."""

    def __init__(
        self, pool: asyncpg.Pool, clock: Clock, ids: Ids, blobs: BlobStore, received: ReceivedMailSource
    ) -> None:
        self._pool = pool
        self._clock = clock
        self._ids = ids
        self._blobs = blobs
        self._received = received

    def periodic(self) -> list[Periodic]:
        async def work() -> str:
            return f"{await self.purge()} threads"

        return [Periodic("inboxes.purge", EVERY, work)]

    def handlers(self) -> Mapping[str, Handler]:
        return {JOB_REMOVE: self.remove}

    async def remove(self, job: Job) -> JobFinished:
        """Remove the messages of a thread that is gone."""
        db = TeamDb(self._pool, job.team_id)
        after = FIRST

        async def some() -> int:
            nonlocal after
            async with db.transaction() as inner:
                gone = await self._messages(inner, job.subject_id, after)
            after = max((message.place for message in gone), default=after)
            return len(gone)

        await in_batches(some)
        return JobFinished()

    async def _messages(self, db: TeamDb, thread_id: UUID, after: tuple[datetime, UUID]) -> list[GoneMessage]:
        """Remove the next messages of a thread, and give their emails back."""
        gone = await purge_queries.drop_messages(db, thread_id, after, AT_ONCE)
        if gone:
            emails = [message.id for message in gone]
            await trust_queries.drop(db, gone[0].inbox_id, emails)
            await inbox_mail.release(db, gone[0].inbox_id, emails)
            await self._received.release(db, gone[0].inbox_id, emails)
        return gone

    async def purge(self) -> int:
        """Remove all that are over their time; returns how many."""
        now = self._clock.now()
        removed = 0
        for team_id in await purge_queries.teams(self._pool, now):
            removed += await self._of_team(TeamDb(self._pool, team_id), now)
        return removed

    async def _of_team(self, db: TeamDb, now: datetime) -> int:
        """Remove the team's threads that are due; return how many. It rests as long as each batch took, so
        the database is at most half busy with it."""
        removed, after = 0, START
        while True:
            started = time.monotonic()
            page = await purge_queries.due(db, now, after, BATCH)
            for thread in page:
                removed += await self._one(db, thread, now)
            if len(page) < BATCH:
                return removed
            after = page[-1]
            await asyncio.sleep(time.monotonic() - started)

    async def _one(self, db: TeamDb, thread: DueThread, now: datetime) -> bool:
        """Remove a thread; False where it is not to be removed any more, or not now."""
        try:
            async with db.transaction() as held:
                await lock(held.connection, [(db.team_id, thread.inbox_id)])
                if not await purge_queries.hold(held, thread.id, now):
                    return False
                blobs = await purge_queries.drop_files(held, thread.id)
                await purge_queries.drop_drafts(held, thread.inbox_id, thread.id)
                gone = await self._messages(held, thread.id, FIRST)
                await purge_queries.drop(held, thread.id)
                if len(gone) == AT_ONCE:
                    await job_queries.add(held, self._ids.new(), JOB_REMOVE, thread.id, now)
        except NOT_NOW:
            return False
        await blob_removal.remove(self._pool, self._blobs, blobs, "inboxes")
        return True

    async def erase(self, db: TeamDb, inbox_id: UUID, thread_id: UUID) -> tuple[Sequence[str | None], bool]:
        """Remove a thread whatever its time is, in the caller's transaction; returns the blobs of its drafts,
        and whether it is gone whole."""
        await lock(db.connection, [(db.team_id, inbox_id)])
        blobs = await purge_queries.drop_files(db, thread_id)
        await purge_queries.drop_drafts(db, inbox_id, thread_id)
        gone = await self._messages(db, thread_id, FIRST)
        await purge_queries.drop(db, thread_id)
        if is_long := len(gone) == AT_ONCE:
            await job_queries.add(db, self._ids.new(), JOB_REMOVE, thread_id, self._clock.now())
        return blobs, not is_long
