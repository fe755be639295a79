"""Bringing a backup into an empty place.

The dump is loaded without the rows of `schema_migrations`: a database without them is refused by every
release, so what an interrupted restore leaves is never taken for an installation. One transaction then writes
those rows, applies the migrations of this release, and puts aside what was open (`restored`). The embedded
database is made under another name and renamed at the very end.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import islice
from pathlib import Path

import asyncpg

from pillarbox.backup import blob_index, queries, restored, secrets
from pillarbox.backup.backup_manifest import DUMP, INDEX, KEYS, BackupFile, BackupManifest
from pillarbox.backup.failure import BackupError
from pillarbox.backup.programs import Programs
from pillarbox.backup.target import BackupTarget, HashedStream, sentences
from pillarbox.kernel.clock import Clock
from pillarbox.kernel.postgres.database import Connection
from pillarbox.kernel.postgres.migrations import (
    TABLE,
    MigrationError,
    MigrationRow,
    apply,
    has_table,
    migrations_in,
    pending_of,
    refuse_old_server,
)
from pillarbox.kernel.security.ring_check import known_keys, lacking
from pillarbox.kernel.security.secrets import KeyRing
from pillarbox.kernel.settings.table import KEY_RING_FILE
from pillarbox.kernel.storage.backend import BlobFailed, BlobMissing, BlobsUnreachable
from pillarbox.kernel.storage.blobs import BlobStore
from pillarbox.kernel.storage.data_folder import LOCK_FILE, RUN_FOLDER
from pillarbox.kernel.storage.store_check import known_id

STORE_ID = "store-id"
"""The blob with the id of its store."""

ALLOWED = frozenset({"lost+found", LOCK_FILE})
"""Entries that an empty folder may hold: it may be a disk of its own, and a start may have been refused
there."""


def refuse_occupied_folder(folder: Path) -> None:
    """Raise BackupError unless the data folder is new or empty."""
    try:
        found = sorted(path.name for path in folder.iterdir() if not _is_nothing(path))
    except FileNotFoundError:
        return
    except OSError as failure:
        raise BackupError(f"The data folder {folder} cannot be used: {failure.strerror}.") from None
    if found:
        raise BackupError(
            f"The data folder {folder} is not empty (it has {found[0]}); restore into a new one. What an "
            "interrupted restore left may be removed."
        )


def _is_nothing(path: Path) -> bool:
    """Return whether an entry of a folder may be there although the folder counts as new."""
    return path.name in ALLOWED or (path.name == RUN_FOLDER and path.is_dir() and not any(path.iterdir()))


async def refuse_occupied_database(url: str) -> None:
    """Raise BackupError unless the database is empty."""
    conn = await asyncpg.connect(url, timeout=15)
    try:
        if await queries.is_occupied(conn):
            raise BackupError("The database is not empty; restore into a new one.")
    finally:
        await conn.close()


def refuse_newer_program(manifest: BackupManifest) -> None:
    """Raise BackupError where the backup was made with a schema that this release does not know."""
    newest = len(migrations_in())
    if manifest.schema_version > newest:
        raise BackupError(
            f"The backup {manifest.name} has schema version {manifest.schema_version}, but this release "
            f"knows only version {newest}; restore it with the newer release."
        )


async def key_ring(
    target: BackupTarget, manifest: BackupManifest, passphrase: str | None, given: str | None
) -> str | None:
    """Return the text of the ring: the one that was given, else the one of the backup; None where there is
    none."""
    if given is not None:
        if not set(manifest.key_ring.ids) <= set(KeyRing.parse(given).key_ids):
            raise BackupError(
                "The key ring that was given lacks keys of the backup: it needs "
                f"{', '.join(manifest.key_ring.ids)}."
            )
        return given
    if not manifest.key_ring.included or passphrase is None:
        return None
    return await ring_in(target, manifest, passphrase)


async def ring_in(target: BackupTarget, manifest: BackupManifest, passphrase: str) -> str:
    """Return the text of the ring of the backup; raises WrongPassphrase, or BackupError where it is
    damaged."""
    file = await target.content(manifest.name, KEYS)
    if BackupFile(len(file), sha256(file).hexdigest()) != manifest.files[KEYS]:
        raise BackupError(
            f"The key ring of the backup {manifest.name} is damaged: its checksum is another one."
        )
    text = secrets.opened(file, passphrase, manifest.name)
    if list(KeyRing.parse(text).key_ids) != manifest.key_ring.ids:
        raise BackupError("The key ring of the backup has other keys than its manifest says.")
    return text


async def load(
    target: BackupTarget, manifest: BackupManifest, url: str, programs: Programs, clock: Clock, scratch: Path
) -> None:
    """Load the database of a backup into an empty one, migrate it to this release's schema, and put its open
    work aside."""
    dump = scratch / DUMP
    await target.fetch(manifest.name, DUMP, dump, manifest.files[DUMP])
    await programs.restore(dump, url, "schema_migrations", scratch)
    dump.unlink()
    conn = await asyncpg.connect(url, timeout=15, server_settings={"application_name": "pillarbox restore"})
    try:
        await refuse_old_server(conn)
        async with conn.transaction():
            await _write_versions(conn, manifest)
            for migration in await pending_of(conn, migrations_in()):
                await apply(conn, migration, alone=True)
            await restored.put_aside(conn, manifest.name, manifest.snapshot_at, clock.now())
        # Without statistics the first plans would read whole tables.
        await queries.analyze(conn)
    except MigrationError as problem:
        raise BackupError(str(problem)) from None
    finally:
        await conn.close()


async def _write_versions(conn: Connection, manifest: BackupManifest) -> None:
    await conn.execute(TABLE)
    await queries.add_versions(
        conn,
        [
            MigrationRow(
                version=m.version,
                name=m.name,
                checksum=m.checksum,
                applied_at=m.applied_at,
                compatible_since=m.compatible_since,
            )
            for m in manifest.migrations
        ],
    )


async def missing_keys(url: str, ring: str | None) -> list[str]:
    """Return the ids of keys that seal values of the database and that the ring lacks. A key that the ring
    has under the same id with other octets counts as lacking."""
    conn = await asyncpg.connect(url, timeout=15)
    try:
        needed = await queries.sealing_keys(conn)
        known = await known_keys(conn)
    finally:
        await conn.close()
    parsed = KeyRing.parse(ring) if ring is not None else None
    return sorted({*lacking(parsed, known), *(needed - set(parsed.key_ids if parsed else ()))})


@dataclass(slots=True)
class BroughtBlobs:
    """The counts of restored blobs; `damaged` names each one that could not be restored, by key and fault."""

    blobs: int = 0
    copied: int = 0
    damaged: list[str] = field(default_factory=list)


async def bring_blobs(
    target: BackupTarget, manifest: BackupManifest, store: BlobStore, scratch: Path
) -> BroughtBlobs:
    """Copy the blobs of a backup to a store, each compared with its checksum; one that is damaged is left
    out. A blob that is there with its size already is kept: blobs are never changed."""
    index = scratch / INDEX
    await target.fetch(manifest.name, INDEX, index, manifest.files[INDEX])
    listed = blob_index.entries(index)
    done = BroughtBlobs()
    with sentences("The blob store or the target"):
        while batch := list(islice(listed, blob_index.AT_ONCE)):
            for outcome in await blob_index.together(_bring(target, entry, store) for entry in batch):
                done.blobs += 1
                done.copied += outcome is True
                if isinstance(outcome, str):
                    done.damaged.append(outcome)
    return done


async def _bring(target: BackupTarget, entry: blob_index.IndexEntry, store: BlobStore) -> bool | str:
    """Return whether the blob was copied; a phrase where the backup no longer has it as it was."""
    if await store.size(entry.key) == entry.size:
        return False
    content = HashedStream(target.blobs.stream(entry.key))
    try:
        await store.put(entry.key, content.__aiter__())
    except BlobMissing:
        return f"{entry.key} is missing"
    except BlobFailed:
        # Of the two stores it may be the one that is written to: then nothing can be restored.
        if (reason := await _unreadable(target, entry.key)) is None:
            raise
        return f"{entry.key} cannot be read ({reason})"
    if (content.file.size, content.file.sha256) != entry[1:]:
        await store.delete(entry.key)
        return f"{entry.key} is damaged: its checksum is another one"
    return True


async def _unreadable(target: BackupTarget, key: str) -> str | None:
    """Return why a blob of the target cannot be read; None where it can, or where the target cannot be
    reached."""
    try:
        async for _ in target.blobs.stream(key):
            pass
    except BlobsUnreachable:
        return None
    except BlobFailed as failure:
        return failure.reason
    except BlobMissing:
        return "it is gone"
    return None


async def mark_store(url: str, store: BlobStore) -> None:
    """Give the new blob store the id by which the database knows its store, if it knows one."""
    conn = await asyncpg.connect(url, timeout=15)
    try:
        if not await has_table(conn, "blob_store"):
            return
        known = await known_id(conn)
    finally:
        await conn.close()
    with sentences("The blob store"):
        if known is not None and await store.size(STORE_ID) is None:
            await store.put(STORE_ID, str(known).encode())


def write_key_ring(folder: Path, ring: str) -> None:
    """Write the key ring's file of a data folder; it is durable on return."""
    descriptor = os.open(folder / KEY_RING_FILE, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(ring.strip() + "\n")
        file.flush()
        os.fsync(file.fileno())


async def differences(url: str, manifest: BackupManifest, ignored: Iterable[str] = ()) -> list[str]:
    """Return the tables that have another number of rows than the manifest says."""
    conn = await asyncpg.connect(url, timeout=15)
    try:
        found = await queries.counts(conn)
    finally:
        await conn.close()
    return [
        f"The table {table} has {found.get(table, 0):,} rows, not {rows:,}."
        for table, rows in sorted(manifest.tables.items())
        if found.get(table, 0) != rows and table not in ignored
    ]
