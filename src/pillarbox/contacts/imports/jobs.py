"""The job that does a team's imports, one by one in the order in which they were made (contact-imports.md 8).

The job reads a file through a process of its own and commits batch by batch. Whoever takes over goes on
behind the last batch that is committed.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

import asyncpg
import msgspec

from pillarbox.contact_properties import columns as property_columns
from pillarbox.contacts.imports import batch_transaction, queries
from pillarbox.contacts.imports.batch_transaction import ImportOvertaken, PlanChanged, RunningImport
from pillarbox.contacts.imports.files import remove_file
from pillarbox.contacts.imports.queries import JOB
from pillarbox.contacts.imports.reading import ReaderDied, reading
from pillarbox.contacts.imports.speed import ImportSpeed
from pillarbox.emails.recent_mail import RecentMail
from pillarbox.kernel.clock import Clock
from pillarbox.kernel.ids import EPOCH
from pillarbox.kernel.observability.log import get
from pillarbox.kernel.observability.metrics import Counter
from pillarbox.kernel.postgres.database import RETRIED, TROUBLE, Connection, TeamDb, transaction
from pillarbox.kernel.process import faults
from pillarbox.kernel.storage.blobs import BlobFailed, BlobMissing, BlobStore
from pillarbox.kernel.work import job_queries
from pillarbox.kernel.work.jobs import (
    DecidedAtSettle,
    EndingHandler,
    Handler,
    Job,
    JobFinished,
    JobLimit,
    JobPostponed,
)
from pillarbox.suppressions.erased_addresses import ErasedAddresses

log = get("imports")

LIMIT: Final = JobLimit((JOB,), running=1, batch=1, pause=0.5)
"""One at a time in each process: it takes one processor for the file and one for the database."""

TURN: Final = timedelta(seconds=60)
"""After so long the imports of another team come first, if there are any."""

TRIES: Final = 5
"""Batches that are undone by others in a row, and processes that die over one batch."""

TROUBLE_GAP: Final = timedelta(seconds=10)
GIVE_UP_AFTER: Final = timedelta(hours=24)
UNREADABLE: Final = "file_unreadable"
INTERNAL: Final = "internal_error"

ROWS = Counter(
    "pillarbox_import_rows",
    "Rows of files with contacts that were applied, or failed.",
    ("outcome",),
    [("applied",), ("failed",)],
)
ENDED = Counter(
    "pillarbox_imports", "Imports of contacts that ended.", ("status",), [("completed",), ("failed",)]
)

UNDONE: Final = (
    asyncpg.DeadlockDetectedError,
    asyncpg.LockNotAvailableError,
    asyncpg.SerializationError,
)


@dataclass(frozen=True, slots=True)
class ImportJobs:
    """Does imports."""

    pool: asyncpg.Pool
    blobs: BlobStore
    clock: Clock
    mail: RecentMail
    erased: ErasedAddresses | None = None

    def handlers(self) -> Mapping[str, Handler]:
        return {JOB: EndingHandler(self.run, self.give_up)}

    async def run(self, job: Job) -> DecidedAtSettle | JobPostponed:
        """Do the team's oldest import that has not ended, as far as its turn goes."""
        taken = await queries.take(TeamDb(self.pool, job.team_id), self.clock.now())
        if taken is None:
            return self._next(job)
        running = RunningImport.of(taken)
        try:
            is_over = await self._do(job, running)
        except ImportOvertaken:
            return self._next(job)
        except BlobFailed as trouble:
            log.warning("imports.file_trouble", id=running.id, reason=trouble.reason)
            if self.clock.now() - running.created_at < GIVE_UP_AFTER:
                return JobPostponed(self.clock.now() + TROUBLE_GAP, "file_trouble")
            is_over = await self._fail(job, running)
        except RETRIED as trouble:
            log.warning("imports.database_trouble", id=running.id, trouble=repr(trouble)[:200])
            return JobPostponed(self.clock.now() + TROUBLE_GAP, "database_trouble")
        return self._next(job) if is_over else JobPostponed(self.clock.now(), "others_wait")

    async def give_up(self, job: Job) -> DecidedAtSettle:
        """End the team's oldest import: over the same rows of its file three processes have died."""
        taken = await queries.take(TeamDb(self.pool, job.team_id), self.clock.now())
        if taken is not None:
            with contextlib.suppress(ImportOvertaken):
                await self._fail(job, RunningImport.of(taken), INTERNAL)
        return self._next(job)

    def _next(self, job: Job) -> DecidedAtSettle:
        """End the job unless the team has another import; one that is made meanwhile waits for the answer."""

        async def decide(conn: Connection) -> JobFinished | JobPostponed:
            db = TeamDb(conn, job.team_id)
            await job_queries.hold(db, job.id)
            if await queries.is_waiting(db):
                return JobPostponed(self.clock.now(), "next_import")
            return JobFinished()

        return DecidedAtSettle(decide)

    async def _do(self, job: Job, running: RunningImport) -> bool:
        """Go through the file; False where it is another team's turn before its end."""
        try:
            size = await self.blobs.size(running.blob)
        except ValueError:
            size = None
        if size != running.size:
            return await self._fail(job, running)
        until = self.clock.now() + TURN
        undone = 0
        while True:
            before = running.checkpoint
            try:
                async with contextlib.aclosing(self._batches(job, running)) as batches:
                    async for at in batches:
                        running = at
                        if self.clock.now() >= until and await self._others_wait(job):
                            return False
            except BlobMissing:
                return await self._fail(job, running)
            except PlanChanged:
                continue
            except ReaderDied:
                if running.checkpoint != before:
                    continue
                if running.checkpoint.deaths >= TRIES:
                    return await self._fail(job, running)
                running = await self._died(job, running)
            except UNDONE as trouble:
                undone = 0 if running.checkpoint != before else undone + 1
                log.info("imports.batch_undone", id=running.id, trouble=type(trouble).__name__)
                if undone > TRIES:
                    raise
            else:
                await self._release(job, running)
                return True

    async def _batches(self, job: Job, running: RunningImport) -> AsyncGenerator[RunningImport, None]:
        """Yield the import behind each batch from its checkpoint on; it has ended behind the last one."""
        async with transaction(self.pool) as conn:
            db = TeamDb(conn, job.team_id)
            numbers = await property_columns.held(db, running.numbers)
        at = running.checkpoint
        now = int((self.clock.now() - EPOCH) / timedelta(milliseconds=1))
        file = self.blobs.stream(running.blob, at.offset, running.size)
        speed = ImportSpeed(self.mail, self.clock)
        # One connection for all batches: each that is used keeps what it needed for a batch.
        async with reading(running.plan(numbers), now, file) as reader, self.pool.acquire() as conn:
            is_over = False
            while not is_over:
                head = await reader.next(await speed.rows(conn))
                began = self.clock.boottime()
                is_over = head.is_last
                running = await batch_transaction.apply(
                    conn, job, running, numbers, reader, head, self.clock.now(), self.erased
                )
                ROWS.add(head.rows - head.failed, ("applied",))
                ROWS.add(head.failed, ("failed",))
                await faults.point("import.batch_committed")
                yield running
                if not is_over:
                    await speed.rest(began)
        ENDED.add(1, ("failed" if head.fault else "completed",))
        log.info("imports.ended", id=running.id, rows=head.row, fault=head.fault)

    async def _others_wait(self, job: Job) -> bool:
        return await queries.others_wait(TeamDb(self.pool, job.team_id), self.clock.now())

    async def _died(self, job: Job, running: RunningImport) -> RunningImport:
        """Write down that the process that reads the file died."""
        log.error("imports.reader_died", id=running.id, row=running.checkpoint.row)
        at = msgspec.structs.replace(running.checkpoint, deaths=running.checkpoint.deaths + 1)
        text = msgspec.json.encode(at).decode()
        async with transaction(self.pool) as conn:
            db = TeamDb(conn, job.team_id)
            counted = await queries.advance(db, running.id, 0, 0, 0, 0, text)
            if not counted or not await job_queries.go_on(db, job.id, job.attempt):
                raise ImportOvertaken
        return replace(running, checkpoint=at)

    async def _fail(self, job: Job, running: RunningImport, reason: str = UNREADABLE) -> bool:
        """End an import whose file cannot be read, or not be done; always True."""
        await batch_transaction.fail(self.pool, job, running, reason, self.clock.now())
        ENDED.add(1, ("failed",))
        log.warning("imports.ended", id=running.id, rows=running.checkpoint.row, fault=reason)
        await self._release(job, running)
        return True

    async def _release(self, job: Job, running: RunningImport) -> None:
        """Remove the file of an import that has ended; where that fails, it is done later (`retention`)."""
        with contextlib.suppress(BlobFailed, *TROUBLE):
            await remove_file(self.pool, self.blobs, job.team_id, running.id, running.blob)
