"""Reads the argument TARGET: a folder of this machine, or a prefix of a bucket."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from pillarbox.backup.failure import BackupError
from pillarbox.kernel.settings.table import KEY_RING_FILE
from pillarbox.kernel.storage.blobs import SCHEMES
from pillarbox.kernel.storage.data_folder import NOTE_FILE, POSTGRES_FOLDER, RUN_FOLDER

BACKUPS = "backups"
BLOBS = "blobs"
LOCAL_HOSTS = ("", "localhost")
MARKS = (KEY_RING_FILE, f"{RUN_FOLDER}/{NOTE_FILE}", f"{POSTGRES_FOLDER}/PG_VERSION")
"""Files that only a data folder has."""

SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(//)?")


class Location(NamedTuple):
    """A folder, or the URL of a prefix of a bucket without a slash at its end."""

    folder: Path | None
    url: str | None

    @property
    def place(self) -> str:
        return self.url if self.url is not None else str(self.folder)


def location_of(argument: str) -> Location:
    """Return the location that the argument names; BackupError where it names none."""
    if not argument.strip() or "\0" in argument:
        raise BackupError("The target has no name: give a folder, or s3://BUCKET/PREFIX.")
    found = SCHEME.match(argument)
    scheme = found[1].lower() if found else ""
    if found is None or (scheme not in SCHEMES and found[2] is None):
        return Location(Path(argument).absolute(), None)
    if scheme not in SCHEMES:
        known = ", ".join(f"{name}://" for name in SCHEMES)
        raise BackupError(f"A target cannot be at {scheme}://; it is a folder or begins with {known}.")
    return _folder_of(argument) if scheme == "file" else _bucket_of(argument)


def _folder_of(argument: str) -> Location:
    parts = urlsplit(argument)
    if parts.netloc not in LOCAL_HOSTS or not parts.path.startswith("/"):
        raise BackupError(
            f"The target {argument} must name a folder of this machine, such as file:///backup."
        )
    return Location(Path(unquote(parts.path)), None)


def _bucket_of(argument: str) -> Location:
    try:
        parts = urlsplit(argument)
    except ValueError:
        parts = urlsplit("")
    if not parts.netloc:
        raise BackupError(f"The target {argument} names no bucket: it looks like s3://BUCKET/PREFIX.")
    if parts.username or parts.password:
        raise BackupError("Credentials of a bucket come from the environment, not from its URL.")
    return Location(None, argument.rstrip("/"))


def refuse_shared_place(target: Location, data: Path, blob_url: str) -> None:
    """Raise BackupError where the target and the installation lie in each other. Blobs that no backup needs
    are removed from a target, so they must not be those of the installation. A backup in the data folder
    would be lost with it."""
    store = urlsplit(blob_url)
    if target.folder is not None:
        folders = [target.folder / BACKUPS, target.folder / BLOBS]
        if any(_overlap(one, data) for one in folders):
            raise BackupError(
                f"The target {target.place} and the data folder {data} lie in each other; a backup belongs "
                "onto another disk."
            )
        blobs = Path(unquote(store.path)).absolute()
        if store.scheme == "file" and any(_overlap(one, blobs) for one in folders):
            raise BackupError(
                f"The target {target.place} and the blob store {blobs} lie in each other; a backup belongs "
                "onto another disk."
            )
    elif store.scheme != "file" and _is_bucket_within(blob_url, target.place):
        raise BackupError(
            f"The blob store {blob_url} lies in the target {target.place}: give the backups a bucket or a "
            "prefix of their own."
        )


def refuse_data_folder(target: Location) -> None:
    """Raise BackupError where the target is, or lies in, the data folder of any installation."""
    if target.folder is None:
        return
    resolved = target.folder.resolve()
    for folder in (resolved, *resolved.parents):
        if any((folder / name).is_file() for name in MARKS):
            where = "is" if folder == resolved else f"lies in {folder}, which is"
            raise BackupError(
                f"The target {target.place} {where} a data folder; a backup belongs onto another disk."
            )


def _overlap(path: Path, other: Path) -> bool:
    path, other = path.resolve(), other.resolve()
    return path.is_relative_to(other) or other.is_relative_to(path)


def _is_bucket_within(store: str, target: str) -> bool:
    """Return whether a blob store is the target, or lies where the target keeps its backups and blobs."""
    inner, outer = _bucket_parts(store), _bucket_parts(target)
    if inner == outer:
        return True
    return any(inner[: len(outer) + 1] == (*outer, name) for name in (BACKUPS, BLOBS))


def _bucket_parts(url: str) -> tuple[str, ...]:
    """Return the bucket and the prefix; the schemes of one kind of store are the same."""
    parts = urlsplit(url)
    scheme = {"s3a": "s3", "azure": "az", "abfs": "az", "abfss": "az"}.get(parts.scheme, parts.scheme)
    return (scheme, parts.netloc, *(name for name in parts.path.split("/") if name))
