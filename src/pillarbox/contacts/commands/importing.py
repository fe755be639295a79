"""`pillarbox contacts import`: a file goes the way of one that comes by the API; the command waits for it."""

from __future__ import annotations

import asyncio
import csv
import os
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import IO, Any, Final
from uuid import UUID

import asyncpg
import msgspec

from pillarbox.contacts.imports import queries
from pillarbox.contacts.imports.columns import FIELDS
from pillarbox.contacts.imports.intake import ImportIntake
from pillarbox.contacts.imports.jobs import LIMIT, ImportJobs
from pillarbox.contacts.imports.queries import ImportCounts, ListedError
from pillarbox.contacts.imports.wire import options_of
from pillarbox.emails.recent_mail import RecentMail
from pillarbox.kernel.clock import SystemClock
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.postgres.bounded_pool import close_within
from pillarbox.kernel.postgres.database import TeamDb, open_pool
from pillarbox.kernel.security.link_keys import LinkKeys
from pillarbox.kernel.storage.blobs import BlobFailed, BlobStore
from pillarbox.kernel.storage.disk_space import DiskSpace
from pillarbox.kernel.storage.store_check import BlobStoreRefused, compare
from pillarbox.kernel.terminal.answers import CommandRefused, counted, say
from pillarbox.kernel.terminal.connect import CommandDatabase
from pillarbox.kernel.terminal.output_file import output_file
from pillarbox.kernel.terminal.progress import Transfer, transfer
from pillarbox.kernel.wire.paging import Page
from pillarbox.kernel.wire.problems import Problem
from pillarbox.kernel.work.jobs import Jobs
from pillarbox.suppressions.erased_addresses import ErasedAddresses
from pillarbox.teams.commands.choosing import one_team

PIECE: Final = 256 * 1024
LOOK_EVERY: Final = 0.2
CONNECTIONS: Final = 4
STOP_SECONDS: Final = 5.0
ENDED: Final = ("completed", "failed")
COMPLETED: Final = 0
WITH_ERRORS: Final = 1


@dataclass(frozen=True, slots=True)
class ImportArguments:
    """The arguments of an import: columns are FIELD=COLUMN, topics ID=SUBSCRIPTION; row errors go to
    `errors`."""

    file: str
    columns: Sequence[str]
    segments: Sequence[str]
    topics: Sequence[str]
    on_conflict: str
    errors: str | None


async def import_file(connected: CommandDatabase, team: str | None, import_arguments: ImportArguments) -> int:
    """Import a file; 0 when every row of it was applied, 1 otherwise."""
    owner = await one_team(connected, team)
    blobs = BlobStore.open(connected.settings.blobs)
    url = connected.settings.database_url or ""
    pool = await open_pool(url, limit=CONNECTIONS, application="pillarbox command", by_key=True)
    try:
        async with pool.acquire() as conn:
            await compare(conn, blobs, connected.settings)
        db = TeamDb(pool, owner.id)
        with (
            opened(import_arguments.file) as file,
            transfer("Storing", os.fstat(file.fileno()).st_size) as shown,
        ):
            intake = ImportIntake(blobs, Ids(SystemClock()), DiskSpace(SystemClock(), []), lambda: None)
            options = options_of(fields_of(import_arguments))
            import_id = await intake.take_pieces(db, pieces(file, shown), options)
        async with doing(pool, blobs, connected):
            found = await followed(db, import_id)
        return await told(db, found, import_arguments)
    except (Problem, BlobStoreRefused) as refused:
        raise CommandRefused(str(refused)) from None
    except BlobFailed as trouble:
        raise CommandRefused(f"The file cannot be stored: {trouble.reason}.") from None
    finally:
        await close_within(pool, STOP_SECONDS)
        await blobs.close()


@contextmanager
def opened(name: str) -> Iterator[IO[bytes]]:
    try:
        with open(name, "rb") as file:
            yield file
    except OSError as wrong:
        raise CommandRefused(f"{name} cannot be read: {wrong.strerror or wrong}.") from None


def fields_of(import_arguments: ImportArguments) -> dict[str, str]:
    """Return the options as fields of a form."""
    found = {"on_conflict": import_arguments.on_conflict, "segments": _json(list(import_arguments.segments))}
    topics = [one.partition("=") for one in import_arguments.topics]
    found["topics"] = _json([{"id": topic, "subscription": word or "opt_in"} for topic, _, word in topics])
    if import_arguments.columns:
        found["column_map"] = _json(column_map(import_arguments.columns))
    return found


def column_map(columns: Sequence[str]) -> dict[str, Any]:
    """Return the map that FIELD=COLUMN and PROPERTY[:TYPE]=COLUMN mean."""
    found: dict[str, Any] = {}
    properties: dict[str, Any] = {}
    for one in columns:
        name, sign, column = one.partition("=")
        if not sign or not name.strip() or not column.strip():
            raise CommandRefused(f"--map {one} is not of the form FIELD=COLUMN.")
        name = name.strip()
        if name in FIELDS:
            found[name] = column
        else:
            key, _, kind = name.partition(":")
            properties[key] = {"column": column, "type": kind or "string"}
    return {**found, "properties": properties}


async def pieces(file: IO[bytes], shown: Transfer) -> AsyncIterator[bytes]:
    """Yield the file, a piece at a time."""
    at = 0
    while piece := await asyncio.to_thread(file.read, PIECE):
        at += len(piece)
        shown.reach(at, 0)
        yield piece


@asynccontextmanager
async def doing(pool: asyncpg.Pool, blobs: BlobStore, connected: CommandDatabase) -> AsyncIterator[None]:
    """Have imports done while the block runs: by the server, or by this process where there is none."""
    if connected.server is not None:
        yield
        return
    clock = SystemClock()
    handlers = ImportJobs(
        pool,
        blobs,
        clock,
        RecentMail(clock),
        erased=ErasedAddresses(LinkKeys(pool, clock, connected.key_ring())),
    ).handlers()
    jobs = Jobs(pool, clock, Ids(clock).new(), handlers, limits=(LIMIT,))
    await jobs.start()
    try:
        yield
    finally:
        await jobs.stop(STOP_SECONDS)


async def followed(db: TeamDb, import_id: UUID) -> ImportCounts:
    """Return the import when it has ended; a person sees how far it is."""
    size = await queries.size(db, import_id)
    with transfer("Importing", size) as shown:
        while True:
            found = await queries.one(db, import_id)
            if found is None:
                raise CommandRefused("The import is gone.")
            shown.reach(await queries.position(db, import_id) or 0, total_of(found))
            if found.status in ENDED:
                break
            await asyncio.sleep(LOOK_EVERY)
    say(f"{shown.summary}.")
    return found


async def told(db: TeamDb, import_counts: ImportCounts, import_arguments: ImportArguments) -> int:
    """Say what became of the rows, and write down those that failed; the exit status."""
    names = ("created", "updated", "skipped", "failed")
    say(", ".join(f"{getattr(import_counts, name):,} {name}" for name in names) + ".")
    faulty = [one async for one in errors(db, import_counts.id)]
    if import_arguments.errors is not None:
        with output_file(import_arguments.errors) as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(("row", "email", "reason"))
            writer.writerows((one.row_number, one.email or "", one.reason) for one in faulty)
        say(f"{import_arguments.errors}: {counted(len(faulty), 'error')}.")
    elif faulty:
        say(
            f"The first: row {faulty[0].row_number}, {faulty[0].reason}. --errors FILE writes them to a file."
        )
    if import_counts.status == "failed":
        say(f"The file could not be read to its end: {faulty[-1].reason} in row {faulty[-1].row_number}.")
    return COMPLETED if import_counts.status == "completed" and not import_counts.failed else WITH_ERRORS


async def errors(db: TeamDb, import_id: UUID) -> AsyncIterator[ListedError]:
    """Yield all listed errors of an import."""
    page = Page(100)
    while block := await queries.errors(db, page, import_id):
        for one in block[:100]:
            yield one
        if len(block) <= 100:
            return
        page = Page(100, after=block[99].id)


def total_of(import_counts: ImportCounts) -> int:
    return import_counts.created + import_counts.updated + import_counts.skipped + import_counts.failed


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
