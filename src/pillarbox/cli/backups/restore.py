"""`pillarbox restore SOURCE`: a backup into an empty data folder, or an empty database of one's own."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated

import typer

from pillarbox.backup import restore, restored
from pillarbox.backup.backup_manifest import BackupManifest
from pillarbox.backup.location import refuse_shared_place
from pillarbox.backup.programs import Programs
from pillarbox.backup.target import BackupTarget
from pillarbox.cli.backups.database import BackupName, BlobUrl, PgBin, passphrase, perform
from pillarbox.cli.backups.restored import show_restored_work
from pillarbox.kernel.clock import SystemClock
from pillarbox.kernel.postgres.database import open_pool
from pillarbox.kernel.postgres.embedded import EmbeddedPostgres
from pillarbox.kernel.process.supervisor import postgres_folder
from pillarbox.kernel.settings.settings import PASSPHRASE_VARIABLE, Settings
from pillarbox.kernel.storage.blobs import BlobStore
from pillarbox.kernel.storage.data_folder import RESTORING, locked
from pillarbox.kernel.terminal.answers import CommandRefused, clean, counted, instant, say
from pillarbox.kernel.terminal.connect import Data, DatabaseUrl

INCOMPLETE = 3

Source = Annotated[str, typer.Argument(metavar="SOURCE", help="A folder, or s3://BUCKET/PREFIX.")]
SecretKey = Annotated[
    str | None,
    typer.Option(
        "--secret-key",
        metavar="RING",
        help="The key ring, where it is not in the backup [PILLARBOX_SECRET_KEY].",
        show_default=False,
    ),
]
WithoutKeys = Annotated[
    bool,
    typer.Option(
        "--without-keys", help="Restore without the key ring: DKIM keys and webhook secrets are lost."
    ),
]


def command(
    source: Source,
    backup: BackupName = None,
    without_keys: WithoutKeys = False,
    data: Data = None,
    database_url: DatabaseUrl = None,
    blob_url: BlobUrl = None,
    secret_key: SecretKey = None,
    pg_bin: PgBin = None,
) -> None:
    """Bring a backup into an empty data folder or an empty database.

    Nothing is sent: what was open when the backup was made is put aside until `pillarbox restored release` or
    `drop`. Status 0: restored; 1: not; 3: restored, but for blobs or rows that the backup no longer has
    as they were, which are named.
    """
    perform(
        lambda settings: restore_backup(settings, source, backup, without_keys=without_keys),
        data=data,
        database_url=database_url,
        blob_url=blob_url,
        secret_key=secret_key,
        pg_bin=pg_bin,
    )


async def restore_backup(settings: Settings, source: str, backup: str | None, *, without_keys: bool) -> int:
    restore.refuse_occupied_folder(settings.data)
    if settings.database_url is not None:
        await restore.refuse_occupied_database(settings.database_url)
    target = BackupTarget.open(source)
    refuse_shared_place(target.location, settings.data, settings.blobs)
    clock = SystemClock()
    try:
        manifest = await target.manifest(backup)
        restore.refuse_newer_program(manifest)
        ring = await chosen_ring(settings, target, manifest, without_keys=without_keys)
        with locked(settings.data):
            is_whole = await into(settings, target, manifest, ring, clock)
    finally:
        await target.close()
    say("Look at it with `pillarbox verify`, then start the server.")
    return 0 if is_whole else INCOMPLETE


async def chosen_ring(
    settings: Settings, target: BackupTarget, manifest: BackupManifest, *, without_keys: bool
) -> str | None:
    """Return the key ring that the restored installation gets."""
    if without_keys:
        return None
    phrase = None
    if settings.secret_key is None and manifest.key_ring.included:
        phrase = passphrase("Passphrase of the key ring", twice=False)
    ring = await restore.key_ring(target, manifest, phrase, settings.secret_key)
    if ring is None and manifest.key_ring.ids:
        ids = ", ".join(manifest.key_ring.ids)
        raise CommandRefused(
            f"The key ring (key {ids}) is missing: "
            + (f"set {PASSPHRASE_VARIABLE}" if manifest.key_ring.included else "give it with --secret-key")
            + ", or restore without it with --without-keys."
        )
    return ring


async def into(
    settings: Settings, target: BackupTarget, manifest: BackupManifest, ring: str | None, clock: SystemClock
) -> bool:
    """Restore all of the backup, the database last; False where something of it was damaged."""
    scratch = settings.data / RESTORING
    scratch.mkdir(mode=0o700)
    say(f"Restoring {manifest.name}: the installation at {instant(manifest.snapshot_at)}.")
    store = BlobStore.open(settings.blobs)
    try:
        brought = await restore.bring_blobs(target, manifest, store, scratch)
        say(f"{counted(brought.blobs, 'blob')}, {brought.copied:,} of them copied.")
        for phrase in brought.damaged:
            say(f"PROBLEM: The blob {clean(phrase)}; it is not restored.")
        problems = await load(settings, target, manifest, ring, store, clock)
    finally:
        await store.close()
    shutil.rmtree(scratch)
    return not (brought.damaged or problems)


async def load(
    settings: Settings,
    target: BackupTarget,
    manifest: BackupManifest,
    ring: str | None,
    store: BlobStore,
    clock: SystemClock,
) -> list[str]:
    """Restore the database and print the result; return where it differs from the manifest."""
    async with database(settings) as url:
        scratch = settings.data / RESTORING
        await restore.load(target, manifest, url, Programs(settings.pg_bin), clock, scratch)
        await restore.mark_store(url, store)
        problems = await restore.differences(url, manifest, ("schema_migrations", "processes", "restored"))
        for line in problems:
            say(f"PROBLEM: {line}")
        lost = await restore.missing_keys(url, ring)
        if ring is not None and settings.secret_key is None:
            restore.write_key_ring(settings.data, ring)
        pool = await open_pool(url, limit=1, application="pillarbox restore")
        work = await restored.summary(pool, clock.now())
        await pool.close()
    say(f"{counted(manifest.tables.get('emails', 0), 'email')} restored.")
    if lost:
        say(
            f"Values that are encrypted with key {', '.join(lost)} can NOT be read: "
            + (
                "there is no key ring."
                if ring is None
                else "the key ring lacks it, or has another one so named."
            )
        )
    if manifest.blobs.missing:
        say(f"{counted(manifest.blobs.missing, 'blob was', 'blobs were')} missing already in the backup.")
    show_restored_work(work, manifest.snapshot_at)
    return problems


@asynccontextmanager
async def database(settings: Settings) -> AsyncIterator[str]:
    """Yield the address of the database that is filled. The embedded one gets its name when the block is
    over."""
    if settings.database_url is not None:
        yield settings.database_url
        return
    draft: Path = settings.data / (RESTORING + "-postgres")
    postgres = EmbeddedPostgres(draft, bin_dir=settings.pg_bin)
    try:
        await postgres.start()
        yield postgres.url()
    finally:
        await postgres.stop()
    await asyncio.to_thread(draft.rename, postgres_folder(settings))
