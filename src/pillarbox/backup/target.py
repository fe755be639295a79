"""Where backups are kept: a folder of this machine, or a prefix of an object store."""

from __future__ import annotations

import asyncio
import errno
import os
import re
import shutil
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from hashlib import sha256
from io import FileIO
from pathlib import Path
from typing import Protocol, TypeVar

from obstore.exceptions import BaseError
from obstore.store import from_url

from pillarbox.backup.backup_manifest import DUMP, INDEX, KEYS, MANIFEST, BackupFile, BackupManifest, decoded
from pillarbox.backup.failure import BackupError
from pillarbox.backup.location import BACKUPS, BLOBS, Location, location_of
from pillarbox.kernel.storage.backend import PART, BlobFailed, BlobMissing, gathered
from pillarbox.kernel.storage.blobs import BlobStore
from pillarbox.kernel.storage.bucket import Bucket
from pillarbox.kernel.storage.folder import FolderBackend

R = TypeVar("R")

DRAFT = ".unfinished-"
SCRATCH = "The folder for temporary files"
REMOVED = ".removed-"
FILES = (DUMP, INDEX, KEYS, MANIFEST)
NAME = re.compile(r"[0-9]{8}T[0-9]{6}\.[0-9]{6}Z-[0-9a-f]+")
"""Of a backup; what else lies in a target is not ours, and left alone."""


class BackupFiles(Protocol):
    """The files of the backups of a target."""

    async def write(self, backup: str, name: str, data: AsyncIterable[bytes]) -> None: ...

    async def publish(self, backup: str) -> None: ...

    async def abandon(self, backup: str) -> None: ...

    def read(self, backup: str, name: str) -> AsyncIterator[bytes]: ...

    async def names(self) -> list[str]: ...

    async def remove(self, backup: str) -> None: ...

    async def remove_unfinished(self) -> None: ...


class BackupTarget:
    """A place for backups. Errors of the place are BackupError, with a sentence."""

    def __init__(self, location: Location, files: BackupFiles, blobs: BlobStore) -> None:
        self.location = location
        self.place = location.place
        self.blobs = blobs
        self._files = files

    @classmethod
    def open(cls, place: str) -> BackupTarget:
        """Return the target that an argument names; nothing is read or written yet."""
        location = location_of(place)
        if location.folder is not None:
            folder = location.folder
            return cls(location, FolderFiles(folder), BlobStore(FolderBackend(folder / BLOBS)))
        url = location.place
        try:
            files, blobs = Bucket(from_url(url)), Bucket(from_url(f"{url}/{BLOBS}"))
        except (BaseError, ValueError) as failure:
            # What follows the first line is the library's own notes.
            reason = str(failure).partition("\n")[0].rstrip(".")
            raise BackupError(f"The target {url} cannot be used: {reason}.") from None
        return cls(location, BucketFiles(files), BlobStore(blobs))

    async def close(self) -> None:
        await self.blobs.close()

    async def backups(self) -> list[str]:
        """Return the names of the whole backups, the newest first."""
        return sorted(await self._safely(self._files.names()), reverse=True)

    async def manifest(self, backup: str | None = None) -> BackupManifest:
        """Return the manifest of the backup of that name, or of the newest one; BackupError where there is
        none."""
        names = await self.backups()
        if not names:
            raise BackupError(f"There is no whole backup in {self.place}.")
        if backup is not None and backup not in names:
            raise BackupError(
                f"There is no whole backup {backup!r} in {self.place}; the newest is {names[0]}."
            )
        name = backup or names[0]
        return decoded(await self.content(name, MANIFEST), name)

    async def write(self, backup: str, name: str, data: AsyncIterable[bytes] | bytes) -> BackupFile:
        """Store a file of a backup that is being made."""
        hashed = HashedStream(once(data) if isinstance(data, bytes) else data)
        await self._safely(self._files.write(backup, name, hashed))
        return hashed.file

    async def publish(self, backup: str, manifest: bytes) -> None:
        """Make a backup visible; it is durable on return."""
        await self.write(backup, MANIFEST, manifest)
        await self._safely(self._files.publish(backup))

    async def abandon(self, backup: str) -> None:
        """Remove what there is of a backup that was not finished."""
        await self._safely(self._files.abandon(backup))

    def read(self, backup: str, name: str) -> AsyncIterator[bytes]:
        """Return a file of a whole backup, in pieces; raises BlobMissing, BlobFailed or OSError."""
        return self._files.read(backup, name)

    async def content(self, backup: str, name: str) -> bytes:
        """Return the content of a small file."""

        async def whole() -> bytes:
            return b"".join([chunk async for chunk in self.read(backup, name)])

        return await self._safely(whole())

    async def fetch(self, backup: str, name: str, path: Path, expected: BackupFile) -> None:
        """Copy a file of a backup to a file of this machine; BackupError where its checksum differs."""

        async def copied() -> BackupFile:
            hashed = HashedStream(self.read(backup, name))
            with sentences(f"The folder {path.parent}"), opened(path, "wb") as file:
                async for chunk in self._checked(hashed):
                    await asyncio.to_thread(_write_all, file.fileno(), chunk)
            return hashed.file

        if await self._safely(copied()) != expected:
            raise BackupError(
                f"The file {name} of the backup {backup} is damaged: its checksum is another one."
            )

    async def remove(self, backup: str) -> None:
        """Remove a whole backup, but for its blobs."""
        await self._safely(self._files.remove(backup))

    async def remove_unfinished(self) -> None:
        """Remove what interrupted backups left behind."""
        await self._safely(self._files.remove_unfinished())
        await self._safely(self.blobs.remove_partial(datetime.now(UTC) - timedelta(days=1)))

    async def _checked(self, data: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
        """Yield the same bytes; an error of reading them is reported as the target's."""
        with sentences(f"The target {self.place}"):
            async for chunk in data:
                yield chunk

    async def _safely(self, work: Awaitable[R]) -> R:
        with sentences(f"The target {self.place}"):
            return await work


@contextmanager
def sentences(what: str) -> Iterator[None]:
    """Raise errors of a disk or a store as BackupError."""
    try:
        yield
    except BlobMissing as missing:
        raise BackupError(f"{what} has no file {missing}.") from None
    except BlobFailed as failure:
        # A disk gives the name of its error, a store says in words what it is.
        number = getattr(errno, failure.reason, None)
        reason = failure.reason if number is None else os.strerror(number)
        raise BackupError(f"{what} cannot be used: {reason}.") from None
    except OSError as failure:
        raise BackupError(f"{what} cannot be used: {failure.strerror or failure}.") from None


class HashedStream:
    """The same bytes; `file` is their size and checksum once they have all been read."""

    def __init__(self, data: AsyncIterable[bytes]) -> None:
        self._data = data
        self._hash = sha256()
        self._size = 0

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._data:
            self._hash.update(chunk)
            self._size += len(chunk)
            yield chunk

    @property
    def file(self) -> BackupFile:
        return BackupFile(self._size, self._hash.hexdigest())


async def once(data: bytes) -> AsyncIterator[bytes]:
    yield data


def opened(path: Path | int, mode: str) -> FileIO:
    """Return an open file without a buffer of its own."""
    return FileIO(path, mode)


async def pieces(path: Path) -> AsyncIterator[bytes]:
    """Yield a file of this machine, piece by piece."""
    with opened(path, "rb") as file:
        while chunk := await asyncio.to_thread(file.read, PART):
            yield chunk


class FolderFiles:
    """Backups in a folder. One that is not finished has a name that begins with a dot."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._backups = root / BACKUPS

    async def write(self, backup: str, name: str, data: AsyncIterable[bytes]) -> None:
        draft = self._backups / (DRAFT + backup)
        await asyncio.to_thread(draft.mkdir, 0o700, parents=True, exist_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
        with opened(os.open(draft / name, flags, 0o600), "wb") as file:
            async for part in gathered(data):
                await asyncio.to_thread(_write_all, file.fileno(), part)
            await asyncio.to_thread(os.fsync, file.fileno())

    async def publish(self, backup: str) -> None:
        await asyncio.to_thread(self._publish, backup)

    async def abandon(self, backup: str) -> None:
        await asyncio.to_thread(partial(shutil.rmtree, ignore_errors=True), self._backups / (DRAFT + backup))

    async def read(self, backup: str, name: str) -> AsyncIterator[bytes]:
        path = self._backups / backup / name
        if not path.exists():
            raise BlobMissing(f"{backup}/{name}")
        async for chunk in pieces(path):
            yield chunk

    async def names(self) -> list[str]:
        return await asyncio.to_thread(self._names)

    async def remove(self, backup: str) -> None:
        removed = self._backups / (REMOVED + backup)
        await asyncio.to_thread((self._backups / backup).rename, removed)
        await asyncio.to_thread(shutil.rmtree, removed)

    async def remove_unfinished(self) -> None:
        if await asyncio.to_thread(self._backups.is_dir):
            for mark in (DRAFT, REMOVED):
                for path in self._backups.glob(mark + "*"):
                    if NAME.fullmatch(path.name.removeprefix(mark)):
                        await asyncio.to_thread(shutil.rmtree, path)

    def _publish(self, backup: str) -> None:
        draft = self._backups / (DRAFT + backup)
        _sync(draft)
        draft.rename(self._backups / backup)
        for folder in (self._backups, self._root, self._root.parent):
            if os.access(folder, os.R_OK):
                _sync(folder)

    def _names(self) -> list[str]:
        found = self._backups.glob(f"*/{MANIFEST}")
        return [path.parent.name for path in found if NAME.fullmatch(path.parent.name)]


class BucketFiles:
    """Backups in a bucket. Objects appear whole; the manifest, which makes a backup of them, comes last."""

    def __init__(self, bucket: Bucket) -> None:
        self._bucket = bucket

    async def write(self, backup: str, name: str, data: AsyncIterable[bytes]) -> None:
        await self._bucket.put(_key(backup, name), data)

    async def publish(self, backup: str) -> None:
        """Do nothing: the backup is visible since its manifest was written."""

    async def abandon(self, backup: str) -> None:
        await self.remove(backup)

    def read(self, backup: str, name: str) -> AsyncIterator[bytes]:
        return self._bucket.stream(_key(backup, name), 0, None)

    async def names(self) -> list[str]:
        keys = await self._keys()
        return [key.split("/")[1] for key in keys if key.endswith(f"/{MANIFEST}")]

    async def remove(self, backup: str) -> None:
        for name in reversed(FILES):
            await self._bucket.delete(_key(backup, name))

    async def remove_unfinished(self) -> None:
        whole = set(await self.names())
        for backup in {key.split("/")[1] for key in await self._keys()} - whole:
            await self.remove(backup)

    async def _keys(self) -> list[str]:
        ever = datetime.max.replace(tzinfo=UTC)
        return [key async for key in self._bucket.list(BACKUPS, ever) if _is_ours(key)]


def _is_ours(key: str) -> bool:
    """Return whether it is the key of a file of a backup."""
    parts = key.split("/")
    return len(parts) == 3 and NAME.fullmatch(parts[1]) is not None


def _key(backup: str, name: str) -> str:
    return f"{BACKUPS}/{backup}/{name}"


def _write_all(file: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(file, rest) :]


def _sync(folder: Path) -> None:
    file = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(file)
    finally:
        os.close(file)
