"""Removing older backups, and the blobs that none of the others needs."""

from __future__ import annotations

from pathlib import Path

from pillarbox.backup.backup_manifest import INDEX
from pillarbox.backup.blob_index import only_in
from pillarbox.backup.check import scratch_folder
from pillarbox.backup.failure import BackupError
from pillarbox.backup.target import BackupTarget, sentences


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
    """The index of a backup that is removed; without one that can be read its blobs stay."""
    try:
        return await _index(target, name, folder)
    except BackupError:
        return None
