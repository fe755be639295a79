"""Checking a backup: everything in it is read."""

from __future__ import annotations

import asyncio
import tempfile
from itertools import islice
from pathlib import Path

from pillarbox.backup import blob_index
from pillarbox.backup.backup_manifest import DUMP, INDEX, KEYS, BackupManifest
from pillarbox.backup.failure import BackupError, WrongPassphrase
from pillarbox.backup.programs import Programs
from pillarbox.backup.restore import ring_in
from pillarbox.backup.target import SCRATCH, BackupTarget, sentences

MOST_SHOWN = 20


async def refuse_wrong_passphrase(
    target: BackupTarget, manifest: BackupManifest, passphrase: str | None
) -> None:
    """Raise WrongPassphrase before anything large is read; what else is wrong, `problems` finds."""
    if passphrase is not None and manifest.key_ring.included and KEYS in manifest.files:
        try:
            await ring_in(target, manifest, passphrase)
        except WrongPassphrase:
            raise
        except BackupError:
            return


async def problems(
    target: BackupTarget, manifest: BackupManifest, programs: Programs, passphrase: str | None
) -> list[str]:
    """Return the faults of a backup, a sentence each; empty where a restore would find everything. Checks the
    files, the blobs, the dump's list of tables and, with a passphrase, the key ring."""
    found = []
    with scratch_folder() as folder:
        for name, file in sorted(manifest.files.items()):
            try:
                await target.fetch(manifest.name, name, Path(folder, name), file)
                found += await _of_file(Path(folder, name), name, target, manifest, programs, passphrase)
            except BackupError as problem:
                found.append(str(problem))
            await asyncio.to_thread(Path(folder, name).unlink, missing_ok=True)
    found += [f"The manifest names no {name}." for name in (DUMP, INDEX) if name not in manifest.files]
    return found


def scratch_folder() -> tempfile.TemporaryDirectory[str]:
    """Return a folder that is gone when the block is over."""
    with sentences(SCRATCH):
        return tempfile.TemporaryDirectory(prefix="pillarbox-backup-")


async def _of_file(
    path: Path,
    name: str,
    target: BackupTarget,
    manifest: BackupManifest,
    programs: Programs,
    passphrase: str | None,
) -> list[str]:
    if name == DUMP:
        missing = manifest.tables.keys() - set(await programs.tables_in(path))
        return [f"The dump has no rows of the table {table}." for table in sorted(missing)]
    if name == INDEX:
        return await _of_blobs(path, target, manifest)
    if name == KEYS and passphrase is not None:
        await ring_in(target, manifest, passphrase)
    return []


async def _of_blobs(index: Path, target: BackupTarget, manifest: BackupManifest) -> list[str]:
    found: list[str] = []
    blobs = octets = wrong = 0
    listed = blob_index.entries(index)
    while batch := list(islice(listed, blob_index.AT_ONCE)):
        troubles = await blob_index.together(blob_index.trouble(target.blobs, entry) for entry in batch)
        for entry, trouble in zip(batch, troubles, strict=True):
            blobs, octets = blobs + 1, octets + entry.size
            wrong += trouble is not None
            if trouble is not None and wrong <= MOST_SHOWN:
                found.append(f"The blob {entry.key} {trouble}.")
    if wrong > MOST_SHOWN:
        found.append(f"{wrong - MOST_SHOWN} more blobs are missing or differ.")
    if (blobs, octets) != (manifest.blobs.blobs, manifest.blobs.octets):
        found.append("The index of blobs has another number of blobs than the manifest says.")
    return found
