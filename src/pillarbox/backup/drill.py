"""Trying a backup beside the running server: restored into a folder of its own, verified, and thrown away.

No listener opens, no engine runs, nothing is sent, and the installation is not touched: the blobs are read
from the target.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from pillarbox.backup import check, restore
from pillarbox.backup.backup_manifest import BackupManifest
from pillarbox.backup.programs import Programs
from pillarbox.backup.target import SCRATCH, BackupTarget, sentences
from pillarbox.emails.integrity import blob_references
from pillarbox.emails.integrity.reconcile import reconcile
from pillarbox.kernel.clock import Clock
from pillarbox.kernel.postgres.database import open_pool
from pillarbox.kernel.postgres.embedded import EmbeddedPostgres
from pillarbox.kernel.postgres.invariant import Invariant

PREFIX: Final = "pillarbox-drill-"


@contextmanager
def drill_folder() -> Iterator[Path]:
    """Yield a new temporary folder and remove it afterwards; folders that killed drills have left go
    first."""
    with sentences(SCRATCH):
        remove_left(Path(tempfile.gettempdir()))
        folder, lock = _made()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def _made() -> tuple[Path, int]:
    """Return a new folder and its lock. Before it was locked, another drill may have removed it."""
    while True:
        folder = Path(tempfile.mkdtemp(prefix=PREFIX))
        lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        fcntl.flock(lock, fcntl.LOCK_EX)
        if folder.exists():
            return folder, lock
        os.close(lock)


def remove_left(place: Path) -> None:
    """Remove the folders of drills that were killed, of this account alone."""
    for folder in place.glob(f"{PREFIX}*"):
        with suppress(OSError):
            lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                if os.fstat(lock).st_uid == os.geteuid():
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(lock)


GAPS = 20
CHANGED = frozenset({"schema_migrations", "restored", "processes"})
"""Tables that a restore itself writes to."""


async def drill(
    target: BackupTarget,
    manifest: BackupManifest,
    programs: Programs,
    invariants: Sequence[Invariant],
    clock: Clock,
    *,
    bin_dir: Path | None,
    passphrase: str | None,
) -> list[str]:
    """Restore a backup into a scratch database and return its faults, a sentence each; empty where all is
    well."""
    found = await check.problems(target, manifest, programs, passphrase)
    if found:
        # What is damaged cannot be restored as it was; the sentences say more than a restore that fails.
        return found
    ring = await restore.key_ring(target, manifest, passphrase, None)
    with drill_folder() as folder:
        postgres = EmbeddedPostgres(folder / "postgres", bin_dir=bin_dir, durable=False)
        try:
            await postgres.start()
            url = postgres.url()
            await restore.load(target, manifest, url, programs, clock, folder)
            found += await restore.differences(url, manifest, CHANGED)
            found += await _gaps(url, target, invariants, clock)
            if ring is not None:
                missing = await restore.missing_keys(url, ring)
                found += [
                    f"Values are encrypted with the key {key}, which the ring lacks." for key in missing
                ]
        finally:
            await postgres.stop()
    return found


async def _gaps(url: str, target: BackupTarget, invariants: Sequence[Invariant], clock: Clock) -> list[str]:
    """Return the gaps that `pillarbox verify` would find."""
    pool = await open_pool(url, limit=2, application="pillarbox drill")
    try:
        result = await reconcile(pool, GAPS, invariants)
        blobs = await blob_references.take(pool, target.blobs, clock.now(), GAPS, collect=False)
    finally:
        await pool.close()
    return [gap.sentence for gap in (*result.gaps, *blobs.gaps)]
