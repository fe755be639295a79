"""`pillarbox backup TARGET` makes a backup; `--check` reads one; `backup drill` restores one beside the
server."""

from __future__ import annotations

import os
import secrets
from typing import Annotated

import asyncpg
import typer

from pillarbox.backup import check as checking
from pillarbox.backup.backup_manifest import BackupManifest
from pillarbox.backup.drill import drill
from pillarbox.backup.location import refuse_data_folder, refuse_shared_place
from pillarbox.backup.make import BackupOptions, make
from pillarbox.backup.programs import Programs
from pillarbox.backup.restore import refuse_newer_program
from pillarbox.backup.target import BackupTarget
from pillarbox.cli.backups import queries
from pillarbox.cli.backups.database import (
    BackupName,
    BlobUrl,
    PgBin,
    passphrase,
    perform,
    unmigrated_database,
)
from pillarbox.cli.verify import invariants
from pillarbox.kernel.clock import SystemClock
from pillarbox.kernel.postgres.database import open_connection
from pillarbox.kernel.postgres.migrations import has_table
from pillarbox.kernel.security.ring_check import known_keys, refuse_other_ring
from pillarbox.kernel.settings.settings import PASSPHRASE_VARIABLE, Settings
from pillarbox.kernel.storage.blobs import BlobStore
from pillarbox.kernel.terminal.answers import CommandRefused, clean, counted, instant, say, span
from pillarbox.kernel.terminal.connect import Data, DatabaseUrl

NOT_WHOLE = 1
INCOMPLETE = 3
"""A backup was made, but blobs that rows name were not there to be copied, or something is wrong with older
backups."""

DRILL = "drill"

Words = Annotated[
    list[str],
    typer.Argument(
        metavar="[drill] TARGET",
        help="A folder, or s3://BUCKET/PREFIX. `drill` restores its newest backup beside the running server, "
        "verifies it and throws it away; without a target that of the last backup is taken.",
    ),
]
Check = Annotated[bool, typer.Option("--check", help="Read all of a backup that is there; make none.")]
Keep = Annotated[
    int | None,
    typer.Option(
        "--keep", min=1, metavar="N", help="Then remove all backups but the newest N.", show_default=False
    ),
]
WithoutKeys = Annotated[
    bool, typer.Option("--without-keys", help="Leave the key ring out: you keep a copy of it elsewhere.")
]
Reread = Annotated[
    bool, typer.Option("--reread", help="Compare every blob byte by byte with the one in the target.")
]


def command(
    words: Words,
    check: Check = False,
    keep: Keep = None,
    without_keys: WithoutKeys = False,
    reread: Reread = False,
    backup: BackupName = None,
    data: Data = None,
    database_url: DatabaseUrl = None,
    blob_url: BlobUrl = None,
    pg_bin: PgBin = None,
) -> None:
    """Make a backup while the server runs; check one, or try one.

    It has the database, the blobs, and the key ring, encrypted with a passphrase
    (PILLARBOX_BACKUP_PASSPHRASE or PILLARBOX_BACKUP_PASSPHRASE_FILE).

    Status 0: made, or whole; 1: no backup was made, or it is not whole; 3: made, but blobs were missing,
    or older backups are damaged or could not be removed.
    """
    is_drill = words[0] == DRILL
    places = words[1:] if is_drill else words
    if len(places) > 1 or not (places or is_drill):
        raise typer.BadParameter("name one target")
    place = places[0] if places else None

    async def work(settings: Settings) -> int:
        if is_drill:
            return await try_out(settings, place, backup)
        assert place is not None
        if check:
            return await look_at(settings, place, backup)
        return await back_up(settings, place, keep, without_keys=without_keys, reread=reread)

    perform(work, data=data, database_url=database_url, blob_url=blob_url, pg_bin=pg_bin)


async def refuse_unfit_ring(settings: Settings) -> None:
    """Raise KeyRingRefused where the ring is not that of the database: the backup would lack its keys."""
    conn = await open_connection(settings.database_url or "", application="pillarbox backup")
    try:
        if await has_table(conn, "key_ring_keys"):
            refuse_other_ring(settings, settings.secret_key, await known_keys(conn))
    finally:
        await conn.close()


async def back_up(
    settings: Settings, place: str, keep: int | None, *, without_keys: bool, reread: bool
) -> int:
    target = BackupTarget.open(place)
    refuse_data_folder(target.location)
    phrase = None if without_keys else passphrase("Passphrase for the key ring", twice=True)
    if phrase is None and not without_keys:
        raise CommandRefused(
            f"The key ring needs a passphrase: set {PASSPHRASE_VARIABLE} or {PASSPHRASE_VARIABLE}_FILE; or "
            "leave it out with --without-keys, and keep a copy of it elsewhere."
        )
    async with unmigrated_database(settings) as (found, _):
        refuse_shared_place(target.location, found.data, found.blobs)
        if not without_keys:
            await refuse_unfit_ring(found)
        blobs = BlobStore.open(found.blobs)
        options = BackupOptions(found.secret_key, phrase, keep, reread)
        try:
            manifest, gone, problems = await make(
                found.database_url or "",
                blobs,
                target,
                Programs(found.pg_bin),
                options,
                SystemClock(),
                secrets.token_hex(2),
            )
        finally:
            await blobs.close()
            await target.close()
    show_backup(manifest, target)
    if gone:
        say(f"{counted(len(gone), 'older backup is', 'older backups are')} removed.")
    for problem in problems:
        say(f"PROBLEM: {clean(problem)}")
    return INCOMPLETE if manifest.blobs.missing or problems else 0


def show_backup(manifest: BackupManifest, target: BackupTarget) -> None:
    """Print the contents of a backup, whether the key ring is in it, and which blobs are missing."""
    blobs, octets = manifest.blobs, manifest.octets / 1_000_000
    say(f"Backup {manifest.name} in {target.place}: the installation at {instant(manifest.snapshot_at)}.")
    say(
        f"{counted(manifest.tables.get('emails', 0), 'email')}, schema version {manifest.schema_version}, "
        f"{counted(blobs.blobs, 'blob')} ({blobs.copied:,} copied now), {octets:,.1f} MB."
    )
    ids = ", ".join(manifest.key_ring.ids)
    if manifest.key_ring.included:
        say(f"The key ring (key {ids}) is in it, encrypted with the passphrase.")
    else:
        say(f"The key ring is NOT in it. Without a copy of key {ids} DKIM keys and webhook secrets are lost.")
    if blobs.missing:
        say(f"{counted(blobs.missing, 'blob that a row names was', 'blobs that rows name were')} not there:")
        for key in blobs.missing_keys[:10]:
            say(f"  {key}")


async def look_at(settings: Settings, place: str, backup: str | None) -> int:
    target = BackupTarget.open(place)
    try:
        manifest = await target.manifest(backup)
        phrase = (
            passphrase("Passphrase (empty: the key ring is not opened)", twice=False) if keys_here() else None
        )
        await checking.refuse_wrong_passphrase(target, manifest, phrase)
        found = await checking.problems(target, manifest, Programs(settings.pg_bin), phrase)
    finally:
        await target.close()
    show_backup(manifest, target)
    if phrase is None and manifest.key_ring.included:
        say("Without its passphrase the key ring was not opened.")
    return judged(found, "The backup is whole.", "The backup is NOT whole.")


def keys_here() -> bool:
    """Return whether a passphrase was given without asking for it: a check goes on without one."""
    return PASSPHRASE_VARIABLE in os.environ or f"{PASSPHRASE_VARIABLE}_FILE" in os.environ


async def try_out(settings: Settings, place: str | None, backup: str | None) -> int:
    target = BackupTarget.open(place or await last_target(settings))
    clock = SystemClock()
    try:
        manifest = await target.manifest(backup)
        refuse_newer_program(manifest)
        phrase = passphrase("", twice=False) if keys_here() else None
        await checking.refuse_wrong_passphrase(target, manifest, phrase)
        found = await drill(
            target,
            manifest,
            Programs(settings.pg_bin),
            invariants(),
            clock,
            bin_dir=settings.pg_bin,
            passphrase=phrase,
        )
    finally:
        await target.close()
    show_backup(manifest, target)
    if phrase is None and manifest.key_ring.included:
        say("Without its passphrase the key ring was not opened.")
    say(f"The backup is {span(clock.now() - manifest.snapshot_at)} old.")
    return judged(
        found,
        "It was restored into a temporary place, verified without a gap, and removed again.",
        "The drill FAILED: this backup cannot be restored as it should.",
    )


async def last_target(settings: Settings) -> str:
    """Return the target of the installation's last backup."""
    async with unmigrated_database(settings) as (found, _):
        conn = await asyncpg.connect(found.database_url, timeout=15)
        try:
            if not await has_table(conn, "backups"):
                raise CommandRefused("Name a target: the database knows of no backup.")
            place = await queries.last_target(conn)
        finally:
            await conn.close()
    if place is None:
        raise CommandRefused("Name a target: the database knows of no backup.")
    return place


def judged(problems: list[str], good: str, bad: str) -> int:
    """Print the problems and, by whether there are any, `bad` or `good`; return the command's exit status."""
    for problem in problems:
        say(f"PROBLEM: {clean(problem)}")
    say(bad if problems else good)
    return NOT_WHOLE if problems else 0
