"""Making a backup while the server runs.

In this order: nobody deletes blobs any more (`kernel.storage.blob_removal`); a snapshot is opened, its tables
are counted and its blobs listed; pg_dump writes the same snapshot; the snapshot ends, because copying blobs
may take hours in which the database must be able to clean up; the blobs of the list are copied; the key ring
is encrypted; the manifest makes it a backup. Only then are older backups removed.
"""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from io import BufferedRandom
from pathlib import Path
from typing import BinaryIO, NamedTuple, cast
from uuid import UUID

import asyncpg
from msgspec import UNSET

from pillarbox import __version__
from pillarbox.backup import blob_index, queries, secrets
from pillarbox.backup.backup_manifest import (
    DUMP,
    FORMAT,
    INDEX,
    KEYS,
    AppliedMigration,
    BackupFile,
    BackupManifest,
    BlobCounts,
    KeyRingInfo,
    encoded,
)
from pillarbox.backup.blob_index import BlobCopyResult, IndexEntry, only_in
from pillarbox.backup.check import scratch_folder
from pillarbox.backup.failure import BackupError
from pillarbox.backup.programs import Programs
from pillarbox.backup.queries import Snapshot
from pillarbox.backup.target import SCRATCH, BackupTarget, pieces, sentences
from pillarbox.kernel.clock import Clock
from pillarbox.kernel.observability.log import get
from pillarbox.kernel.postgres.database import TROUBLE, Connection, answered
from pillarbox.kernel.postgres.migrations import applied_in, has_table
from pillarbox.kernel.postgres.pooler import refuse_transaction_mode
from pillarbox.kernel.security.secrets import KeyRing
from pillarbox.kernel.storage import blob_removal
from pillarbox.kernel.storage.blobs import BlobStore
from pillarbox.kernel.storage.store_check import known_id


async def keep_newest(target: BackupTarget, keep: int) -> list[str]:
    """Remove all backups but the newest `keep`; the names of those that are gone.

    What is removed is a backup until the last of its blobs that nobody else needs is about to go. A blob that
    no backup ever had is left alone.
    """
    names = await target.backups()
    kept, removed = names[:keep], names[keep:]
    if not removed:
        return []
    with scratch_folder() as folder:
        kept_indexes = [await _index(target, name, Path(folder)) for name in kept]
        removed_indexes = [path for name in removed if (path := await _readable(target, name, Path(folder)))]
        for name in removed:
            await target.remove(name)
        with sentences(f"The target {target.place}"):
            for key in only_in(removed_indexes, kept_indexes):
                await target.blobs.delete(key)
    return removed


async def _index(target: BackupTarget, name: str, folder: Path) -> Path:
    manifest = await target.manifest(name)
    await target.fetch(name, INDEX, folder / name, manifest.files[INDEX])
    return folder / name


async def _readable(target: BackupTarget, name: str, folder: Path) -> Path | None:
    """Return the index of a backup that is removed; without one that can be read its blobs stay."""
    try:
        return await _index(target, name, folder)
    except BackupError:
        return None


log = get("backup")

KEPT_ROWS = 100
NAMED_BY = "%Y%m%dT%H%M%S.%fZ"


@dataclass(frozen=True, slots=True)
class BackupOptions:
    """How a backup is to be made. Without a passphrase the key ring is left out; `keep` is the number of
    backups that stay, None for all."""

    ring: str | None
    passphrase: str | None
    keep: int | None = None
    reread: bool = False


class BackupResult(NamedTuple):
    """A backup that is there. `gone` are older ones that were removed; `problems` say what is wrong with
    others of the target."""

    manifest: BackupManifest
    gone: list[str]
    problems: list[str]


async def make(
    url: str,
    blobs: BlobStore,
    target: BackupTarget,
    programs: Programs,
    options: BackupOptions,
    clock: Clock,
    suffix: str,
) -> BackupResult:
    """Make a backup of the database and its blobs.

    BackupError where that is not possible: then the target has no backup more or less than before.
    """
    async with session(url) as conn:
        started = clock.now()
        store_id = await _store_id(conn)
        earlier = await _earlier(target, store_id)
        name = name_of(started, earlier.newest, suffix)
        await target.remove_unfinished()
        try:
            manifest = await _write(
                conn, url, blobs, target, programs, options, clock, started, name, earlier, store_id
            )
            await target.publish(name, encoded(manifest))
        except BaseException:
            await _abandon(target, name)
            raise
        await _note(conn, target, manifest)
        try:
            gone = await keep_newest(target, options.keep) if options.keep is not None else []
        except BackupError as problem:
            return BackupResult(
                manifest, [], [*earlier.problems, f"Older backups could NOT be removed: {problem}"]
            )
    return BackupResult(manifest, gone, earlier.problems)


def name_of(started: datetime, newest: str | None, suffix: str) -> str:
    """Return the name of a new backup: its time, to the microsecond, because backups are ordered by their
    names. Where the clock has gone back it comes right behind the newest one, or `--keep` would remove the
    new one."""
    if newest is not None and newest >= f"{started:{NAMED_BY}}":
        started = datetime.strptime(newest.partition("-")[0], NAMED_BY) + timedelta(microseconds=1)
    return f"{started:{NAMED_BY}}-{suffix}"


class EarlierBackups(NamedTuple):
    """The backups that a target already has: the newest name, the newest readable manifest, the faults of
    newer ones."""

    newest: str | None
    manifest: BackupManifest | None
    problems: list[str]


async def _earlier(target: BackupTarget, store_id: UUID | None) -> EarlierBackups:
    """Return the backups in the target. A damaged backup does not prevent new ones; BackupError where they
    belong to another installation."""
    problems = []
    names = await target.backups()
    for name in names:
        try:
            manifest = await target.manifest(name)
        except BackupError as problem:
            problems.append(str(problem))
            continue
        if store_id is not None and manifest.store_id not in (UNSET, store_id):
            raise BackupError(
                f"The target {target.place} has backups of another installation, such as {name}; give each "
                "installation a target of its own."
            )
        return EarlierBackups(names[0], manifest, problems)
    return EarlierBackups(names[0] if names else None, None, problems)


async def _store_id(conn: Connection) -> UUID | None:
    """Return the id of the blob store of the database; the table is not there in older schemas."""
    return await known_id(conn) if await has_table(conn, "blob_store") else None


@asynccontextmanager
async def session(url: str) -> AsyncIterator[asyncpg.Connection]:
    """Yield a connection without limits of time that keeps blobs from being deleted; PoolerError where
    sessions are shared, because its snapshot and its lock belong to the session."""
    await refuse_transaction_mode(url)
    conn = await asyncpg.connect(
        url,
        timeout=15,
        server_settings={
            "application_name": "pillarbox backup",
            "idle_in_transaction_session_timeout": "0",
            "statement_timeout": "0",
            "timezone": "UTC",
        },
    )
    try:
        if not await has_table(conn, "schema_migrations"):
            raise BackupError("The database has no schema yet; there is nothing to back up.")
        if not await blob_removal.hold_off(conn):
            raise BackupError("Another backup of this database is being made.")
        yield conn
    finally:
        await conn.close(timeout=5)


async def _write(
    conn: asyncpg.Connection,
    url: str,
    blobs: BlobStore,
    target: BackupTarget,
    programs: Programs,
    options: BackupOptions,
    clock: Clock,
    started: datetime,
    name: str,
    earlier: EarlierBackups,
    store_id: UUID | None,
) -> BackupManifest:
    """Write everything but the manifest, which is returned."""
    files: dict[str, BackupFile] = {}
    with scratch() as listed, scratch() as index:
        async with _snapshot(conn) as seen:
            programs.refuse_newer(seen.server // 10000)
            applied = [AppliedMigration.of(row) for row in await applied_in(conn)]
            tables, work = await queries.counts(conn), await queries.open_work(conn)
            with sentences(SCRATCH):
                await _list_blobs(conn, cast(BufferedRandom, listed))
            files[DUMP] = await target.write(name, DUMP, programs.dump(url, seen.id))
        copied = await _copy(blobs, target, listed, index, earlier, reread=options.reread)
        if copied.missing:
            await _refuse_lost_session(conn)
        files[INDEX] = await target.write(name, INDEX, pieces(Path(index.name)))
    if options.ring is not None and options.passphrase is not None:
        files[KEYS] = await target.write(name, KEYS, secrets.sealed(options.ring, options.passphrase, name))
    return BackupManifest(
        format=FORMAT,
        name=name,
        program=__version__,
        server=seen.server // 10000,
        schema_version=applied[-1].version if applied else 0,
        migrations=applied,
        started_at=started,
        snapshot_at=seen.at,
        finished_at=clock.now(),
        files=files,
        tables=tables,
        open_work=work,
        blobs=BlobCounts(
            blobs=copied.blobs,
            octets=copied.octets,
            copied=copied.copied,
            missing=copied.missing,
            missing_keys=copied.missing_keys,
        ),
        key_ring=KeyRingInfo(_key_ids(options.ring), included=KEYS in files),
        store_id=store_id or UNSET,
    )


@asynccontextmanager
async def _snapshot(conn: asyncpg.Connection) -> AsyncIterator[Snapshot]:
    """Hold one instant of the database, for pg_dump and for us, for as long as the block runs."""
    async with conn.transaction(isolation="repeatable_read", readonly=True):
        yield await queries.snapshot(conn)


async def _list_blobs(conn: Connection, file: BufferedRandom) -> None:
    """Write the blobs that the snapshot names to a file, a line each, sorted; then go to its start."""
    async for key, size in queries.blobs(conn):
        file.write(f"{key}\t{'' if size is None else size}\n".encode())
    file.seek(0)


def _key_ids(ring: str | None) -> list[str]:
    return [] if ring is None else list(KeyRing.parse(ring).key_ids)


async def _copy(
    blobs: BlobStore,
    target: BackupTarget,
    listed: BinaryIO,
    index: BinaryIO,
    earlier: EarlierBackups,
    *,
    reread: bool,
) -> BlobCopyResult:
    """Bring the blobs to the target; those of its newest backup are there already."""
    with scratch() as file, sentences("The blob store or the target"):
        known = await _known_blobs(target, earlier, Path(file.name))
        copied = await blob_index.copy(
            blobs, target.blobs, blob_index.wanted(listed), known, index, reread=reread
        )
        with sentences(SCRATCH):
            index.flush()
        return copied


async def _known_blobs(target: BackupTarget, earlier: EarlierBackups, file: Path) -> Iterable[IndexEntry]:
    """Return the blobs of the backup before; none where its index is damaged, so that all are copied anew."""
    before = earlier.manifest
    if before is None:
        return ()
    try:
        await target.fetch(before.name, INDEX, file, before.files[INDEX])
    except BackupError as problem:
        earlier.problems.append(str(problem))
        return ()
    return blob_index.entries(file)


async def _refuse_lost_session(conn: Connection) -> None:
    """Raise BackupError where the lock that keeps blobs was lost meanwhile: some may be missing."""
    try:
        await answered(conn, timeout=15)
    except TROUBLE:
        raise BackupError(
            "The connection to the database was lost meanwhile, and blobs were deleted; try again."
        ) from None


async def _abandon(target: BackupTarget, name: str) -> None:
    """Tidy up; what stays of it is no backup and is removed by the next one."""
    try:
        await target.abandon(name)
    except BackupError:
        return


async def _note(conn: Connection, target: BackupTarget, manifest: BackupManifest) -> None:
    """Remember in the database that the backup was made; the table is not there before schema 18. The backup
    is one without that too."""
    try:
        if await has_table(conn, "backups"):
            instants = (manifest.snapshot_at, manifest.finished_at)
            await queries.add_backup(conn, manifest.name, target.place, *instants, manifest.octets)
            await queries.keep_newest_backups(conn, KEPT_ROWS)
    except TROUBLE as trouble:
        log.warning("backup.not_noted", backup=manifest.name, trouble=type(trouble).__name__)


def scratch() -> BinaryIO:
    """Return a file that is gone when it is closed."""
    with sentences(SCRATCH):
        return cast(BinaryIO, tempfile.NamedTemporaryFile(prefix="pillarbox-backup-"))
