"""One batch as one transaction: contacts, memberships, choices, counts, errors and the place in the file
(contact-imports.md 8)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from uuid import UUID

import asyncpg
import msgspec

from pillarbox.contact_properties import columns as property_columns
from pillarbox.contacts.imports import queries, upsert_queries
from pillarbox.contacts.imports.batches import ImportPlan, ImportRowError
from pillarbox.contacts.imports.dialect import NO_DELIMITER
from pillarbox.contacts.imports.queries import MOST_ERRORS, ClaimedImport
from pillarbox.contacts.imports.reader_process import BatchHead
from pillarbox.contacts.imports.reading import FileReader
from pillarbox.contacts.imports.upsert_queries import StagedRows, UpsertCounts, UpsertTarget
from pillarbox.kernel.ids import EPOCH
from pillarbox.kernel.postgres.database import Connection, TeamDb, transaction
from pillarbox.kernel.process import faults
from pillarbox.kernel.work import job_queries
from pillarbox.kernel.work.jobs import Job
from pillarbox.suppressions.erased_addresses import ErasedAddresses


class ImportOvertaken(Exception):  # noqa: N818 (a state of affairs)
    """The import is no longer ours: another claim does it, or it is gone."""


class PlanChanged(Exception):  # noqa: N818 (a state of affairs)
    """A property of the file was deleted."""


class Checkpoint(msgspec.Struct, frozen=True):
    """The place in a file behind what is committed, always between two rows, where a decoder has no state;
    `errors` of its rows are listed. `deaths` counts processes that died since."""

    encoding: str
    delimiter: str
    offset: int
    row: int = 0
    errors: int = 0
    deaths: int = 0


class StoredColumns(msgspec.Struct, frozen=True):
    """Positions of columns: of the fields by name, of the properties as (number, position, type)."""

    fields: dict[str, int] = {}
    properties: list[tuple[int, int, str]] = []


@dataclass(frozen=True, slots=True)
class RunningImport:
    """An import that is being done."""

    id: UUID
    created_at: datetime
    is_skip: bool
    columns: StoredColumns
    segments: Sequence[UUID]
    topics: dict[UUID, str]
    blob: str
    size: int
    checkpoint: Checkpoint

    @classmethod
    def of(cls, taken: ClaimedImport) -> RunningImport:
        return cls(
            taken.id,
            taken.created_at,
            taken.on_conflict == "skip",
            msgspec.json.decode(taken.columns, type=StoredColumns),
            msgspec.json.decode(taken.segments, type=list[UUID]),
            msgspec.json.decode(taken.topics, type=dict[UUID, str]),
            taken.blob or "",
            taken.size,
            msgspec.json.decode(taken.checkpoint, type=Checkpoint),
        )

    @property
    def numbers(self) -> list[int]:
        return [number for number, _, _ in self.columns.properties]

    def plan(self, numbers: set[int]) -> ImportPlan:
        """Return how the rest of the file is read, with those of its properties that still exist."""
        at = self.checkpoint
        return ImportPlan(
            encoding=at.encoding,
            delimiter=at.delimiter or NO_DELIMITER,
            fields=self.columns.fields,
            properties=[one for one in self.columns.properties if one[0] in numbers],
            skip=self.is_skip,
            offset=at.offset,
            row=at.row,
            errors_left=max(0, MOST_ERRORS - at.errors),
        )


async def apply(
    source: Connection,
    job: Job,
    running: RunningImport,
    numbers: set[int],
    reader: FileReader,
    head: BatchHead,
    now: datetime,
    erased: ErasedAddresses | None = None,
) -> RunningImport:
    """Commit a batch whose lines wait at the reader; the import as it is then. Nothing of it is committed
    where this raises."""
    at = EPOCH + timedelta(milliseconds=head.at)
    checkpoint = replace_place(running.checkpoint, head)
    async with transaction(source) as conn:
        db = TeamDb(conn, job.team_id)
        if not head.is_last:
            await queries.commit_without_waiting(conn)
        if await property_columns.held(db, sorted(numbers)) != numbers:
            raise PlanChanged
        written, refused = UpsertCounts(0, 0), 0
        if head.staged:
            segments = await queries.hold_segments(db, sorted(running.segments))
            topics = await queries.hold_topics(db, sorted(running.topics))
            target = UpsertTarget(
                job.team_id, running.id, segments, {topic: running.topics[topic] for topic in topics}
            )
            rows = StagedRows(head.staged, head.given, reader.lines())
            await upsert_queries.stage(conn, rows)
            refused = 0 if erased is None else await _refuse_erased(db, erased)
            work = upsert_queries.insert if running.is_skip else upsert_queries.upsert
            written = await work(conn, rows, target, at)
        others = head.rows - head.failed - written.created - refused
        updated, skipped = (0, others) if running.is_skip else (others, 0)
        counted = await queries.advance(
            db,
            running.id,
            written.created,
            updated,
            skipped + refused,
            head.failed,
            msgspec.json.encode(checkpoint).decode(),
        )
        if not counted or not await job_queries.go_on(db, job.id, job.attempt):
            raise ImportOvertaken
        await add_errors(db, running, errors_of(head))
        if head.is_last:
            await queries.end(db, running.id, "failed" if head.fault else "completed", head.fault, now)
        await faults.point("import.batch_written")
    return replace(running, checkpoint=checkpoint)


async def _refuse_erased(db: TeamDb, erased: ErasedAddresses) -> int:
    """Take rows out of the batch whose person was erased; returns how many. They count as skipped, and no
    error names them."""
    if not await erased.has_any(db):
        return 0
    addresses = await upsert_queries.staged_addresses(db.connection)
    gone = await erased.found_among(db.source, db.team_id, addresses)
    await upsert_queries.unstage(db.connection, sorted(gone))
    return len(gone)


async def fail(pool: asyncpg.Pool, job: Job, running: RunningImport, reason: str, now: datetime) -> None:
    """End an import whose file cannot be read, or not be done."""
    async with transaction(pool) as conn:
        db = TeamDb(conn, job.team_id)
        if not await job_queries.go_on(db, job.id, job.attempt):
            raise ImportOvertaken
        await add_errors(db, running, [ImportRowError(running.checkpoint.row + 1, None, reason)])
        await queries.end(db, running.id, "failed", reason, now)


def replace_place(checkpoint: Checkpoint, head: BatchHead) -> Checkpoint:
    """Return the place behind a batch."""
    return Checkpoint(
        encoding=checkpoint.encoding,
        delimiter=checkpoint.delimiter,
        offset=head.offset,
        row=head.row,
        errors=checkpoint.errors + len(head.errors),
    )


def errors_of(head: BatchHead) -> list[ImportRowError]:
    """Return the row errors of a batch, and behind them what ended the file."""
    if head.fault is None:
        return head.errors
    return [*head.errors, ImportRowError(head.row + 1, None, head.fault)]


async def add_errors(db: TeamDb, running: RunningImport, errors: Sequence[ImportRowError]) -> None:
    if errors:
        await queries.add_errors(
            db,
            running.id,
            [error_id(running, one.row) for one in errors],
            [one.row for one in errors],
            [one.email for one in errors],
            [one.reason for one in errors],
        )


def error_id(running: RunningImport, row: int) -> UUID:
    """Return a UUIDv7 of the import's time whose order among the errors of the import is that of the rows."""
    millis = int((running.created_at - EPOCH) / timedelta(milliseconds=1))
    chance = running.id.int & 0x3FFF_FFFF_FFFF
    rest = (row & 0xFFFF_FFFF) << 42 | chance & (1 << 42) - 1
    return UUID(int=millis << 80 | 7 << 76 | (rest >> 62) << 64 | 2 << 62 | rest & (1 << 62) - 1)
