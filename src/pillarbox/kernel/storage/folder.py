"""Blobs as files, written and synced by us (DUR-01, DUR-11)."""

from __future__ import annotations

import asyncio
import errno
import os
import secrets
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import datetime
from functools import partial
from hashlib import sha256
from io import FileIO
from pathlib import Path
from typing import Any, TypeVar

from pillarbox.kernel.storage.backend import (
    CHUNK,
    PART,
    SECONDS,
    BlobFailed,
    BlobMissing,
    BlobsSilent,
    gathered,
    timeout_of,
)

R = TypeVar("R")

THREADS = 8
PARTIAL = ".partial-"
LONG = 1 << 30
"""For looks at many files at once, which may take as long as reading so much."""


class FolderBackend:
    """Blobs as files, spread over 256 folders by the hash of their key.

    Not by the start of the id: ids begin with the time, so all new files would share one folder.
    `sync` is `os.fsync` unless a test hands in a disk that fails.
    """

    def __init__(self, root: Path, sync: Callable[[int], None] = os.fsync) -> None:
        self._root = root.absolute()
        self._sync = sync
        self._durable: set[Path] = set()
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="blobs")
        self._jobs: set[asyncio.Future[Any]] = set()
        self._hanging: set[Future[Any]] = set()
        self.writable = True

    async def put(self, key: str, data: bytes | AsyncIterable[bytes]) -> None:
        if isinstance(data, bytes):
            await self._in_thread(partial(self._put_whole, key, data), len(data))
            return
        draft = _Partial(self, self.path(key))
        try:
            await self._in_thread(draft.begin)
            async for part in gathered(data):
                await self._in_thread(partial(draft.write, part))
            await self._in_thread(draft.finish, PART)
        except _DiskHanging as hanging:
            self._after(hanging, draft.abandon)
            raise
        except BaseException:
            await self._in_thread(draft.abandon)
            raise

    async def get(self, key: str) -> bytes:
        return await self._in_thread(partial(self._read_whole, key))

    async def size(self, key: str) -> int | None:
        return await self._in_thread(partial(_size, self.path(key)))

    async def stream(self, key: str, start: int, end: int | None) -> AsyncIterator[bytes]:
        file = await self._in_thread(partial(self._open, key))
        is_ours = True
        try:
            while end is None or start < end:
                size = CHUNK if end is None else min(CHUNK, end - start)
                chunk = await self._in_thread(partial(os.pread, file.fileno(), size, start))
                if not chunk:
                    return
                start += len(chunk)
                yield chunk
        except _DiskHanging as hanging:
            is_ours = False
            self._after(hanging, file.close)
            raise
        finally:
            if is_ours:
                file.close()

    async def delete(self, key: str) -> None:
        await self._in_thread(partial(self.path(key).unlink, missing_ok=True))

    async def list(self, prefix: str, older_than: datetime) -> AsyncIterator[str]:
        folders = self._files(self._root / prefix, older_than.timestamp())
        while files := await self._in_thread(partial(_next_files, folders), LONG):
            for path in files:
                if not path.name.startswith(PARTIAL):
                    yield (path.parent.parent / path.name).relative_to(self._root).as_posix()

    async def remove_partial(self, older_than: datetime) -> int:
        return await self._in_thread(partial(self._remove_partial, older_than.timestamp()), LONG)

    async def close(self) -> None:
        """Wait for what is being written, unless it hangs."""
        if self._jobs:
            await asyncio.wait(tuple(self._jobs), timeout=SECONDS)
        self._threads.shutdown(wait=False, cancel_futures=True)

    def path(self, key: str) -> Path:
        """Return the file of a key."""
        folder, _, name = key.rpartition("/")
        return self._root / folder / sha256(key.encode()).hexdigest()[:2] / name

    async def _in_thread(self, work: Callable[[], R], octets: int = 0) -> R:
        """Return the result of `work`, which reads or writes so much; raise `_DiskHanging` where the disk
        does not answer.

        A cancelled caller leaves only when it is done with its file, or it hangs.
        """
        hanging = tuple(self._hanging)
        if len(hanging) >= THREADS:
            raise _DiskHanging(hanging[0])
        running = self._threads.submit(_disk, work)
        job = asyncio.wrap_future(running)
        self._jobs.add(job)
        job.add_done_callback(self._jobs.discard)
        until = asyncio.get_running_loop().time() + timeout_of(octets)
        try:
            await asyncio.wait([job], timeout=timeout_of(octets))
        except asyncio.CancelledError:
            await _ended(job, until)
            raise
        if not job.done():
            job.add_done_callback(_retrieve_exception)
            if not running.cancel():
                self._hanging.add(running)
                running.add_done_callback(self._hanging.discard)
            raise _DiskHanging(running)
        return job.result()

    def _after(self, hanging: _DiskHanging, work: Callable[[], object]) -> None:
        """Do it when the disk has let go of the file, if ever."""
        hanging.running.add_done_callback(lambda _: self._threads.submit(work))

    def _put_whole(self, key: str, data: bytes) -> None:
        draft = _Partial(self, self.path(key))
        try:
            draft.begin()
            draft.write(data)
            draft.finish()
        finally:
            draft.abandon()

    def prepare(self, folder: Path) -> None:
        """Make a folder ready to be written into; BlobFailed once a sync has failed."""
        if not self.writable:
            raise BlobFailed("an earlier write could not be made durable")
        self._make_durable(folder)

    def forget(self) -> None:
        """Look at the folders anew: one has gone from under us."""
        self._durable.clear()

    def _make_durable(self, folder: Path) -> None:
        """Make `folder` if it is missing, and sync its entry in any case."""
        if folder in self._durable:
            return
        if folder != self._root:
            self._make_durable(folder.parent)
        folder.mkdir(mode=0o700, parents=folder == self._root, exist_ok=True)
        if folder != self._root or os.access(folder.parent, os.R_OK):
            self.sync_folder(folder.parent)
        self._durable.add(folder)

    def sync(self, file: int) -> None:
        """Sync an open file; when that fails, nothing more is written here."""
        try:
            self._sync(file)
        except OSError:
            self.writable = False
            raise

    def sync_folder(self, folder: Path) -> None:
        """Sync the entries of a folder, as `sync`."""
        file = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            self.sync(file)
        finally:
            os.close(file)

    def _open(self, key: str) -> FileIO:
        try:
            return FileIO(self.path(key))
        except FileNotFoundError:
            raise BlobMissing(key) from None

    def _read_whole(self, key: str) -> bytes:
        with self._open(key) as file:
            return file.readall()

    def _files(self, top: Path, before: float) -> Iterator[Sequence[Path]]:
        """Yield the files under `top`, folder by folder, that were last written before the given time."""
        for folder, _, names in os.walk(top):
            paths = [Path(folder, name) for name in names]
            if found := [path for path in paths if _written(path) < before]:
                yield found

    def _remove_partial(self, before: float) -> int:
        found = [path for paths in self._files(self._root, before) for path in paths]
        left = [path for path in found if path.name.startswith(PARTIAL)]
        for path in left:
            path.unlink(missing_ok=True)
        return len(left)


class _DiskHanging(BlobsSilent):
    """The disk does not answer; `running` is what it was asked for."""

    def __init__(self, running: Future[Any]) -> None:
        super().__init__()
        self.running = running


class _Partial:
    """A file on its way: invisible until `finish`, gone after `abandon` unless it was finished."""

    def __init__(self, folder: FolderBackend, target: Path) -> None:
        self._folder = folder
        self._target = target
        self._path = target.parent / (PARTIAL + secrets.token_hex(8))
        self._file: int | None = None

    def begin(self) -> None:
        try:
            self._create()
        except FileNotFoundError:
            self._folder.forget()
            self._create()

    def _create(self) -> None:
        self._folder.prepare(self._target.parent)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
        self._file = os.open(self._path, flags, 0o600)

    def write(self, data: bytes) -> None:
        assert self._file is not None
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(self._file, rest) :]

    def finish(self) -> None:
        assert self._file is not None
        self._folder.sync(self._file)
        self._close()
        self._path.rename(self._target)
        self._folder.sync_folder(self._target.parent)

    def abandon(self) -> None:
        self._close()
        self._path.unlink(missing_ok=True)

    def _close(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            os.close(file)


def _disk(work: Callable[[], R]) -> R:
    """Return the result of `work`, with an error of the disk as BlobFailed."""
    try:
        return work()
    except OSError as failure:
        raise BlobFailed(errno.errorcode.get(failure.errno or 0, "disk error")) from failure


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return None


def _written(path: Path) -> float:
    """Return when a file was written; the end of time when it has just gone."""
    try:
        return path.stat(follow_symlinks=False).st_mtime
    except FileNotFoundError:
        return float("inf")


def _next_files(folders: Iterator[Sequence[Path]]) -> Sequence[Path]:
    return next(folders, ())


async def _ended(job: asyncio.Future[R], until: float) -> None:
    """Return when `job` is over, however often the caller is cancelled meanwhile; at the latest then."""
    job.add_done_callback(_retrieve_exception)
    while not job.done() and (left := until - asyncio.get_running_loop().time()) > 0:
        try:
            await asyncio.wait([job], timeout=left)
        except asyncio.CancelledError:
            continue


def _retrieve_exception(job: asyncio.Future[R]) -> None:
    """Retrieve the exception, so that asyncio does not log it: nobody waits for the job any more."""
    if not job.cancelled():
        job.exception()
