"""Disk space (DUR-10): mail is refused while there is little, before a full disk can lose any.

A database whose disk is full stops in the middle of its work. So new mail is refused while the free space is
still enough to send, settle, read and delete what was accepted before, and accepted again when there is
space. It is also refused while a disk does not answer how much space is free.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from pillarbox.kernel.clock import Clock
from pillarbox.kernel.observability.log import get
from pillarbox.kernel.observability.metrics import GREATEST, Gauge
from pillarbox.kernel.storage.data_folder import POSTGRES_FOLDER
from pillarbox.kernel.wire.problems import ServerOverloaded

log = get("disk_space")

SHORT = Gauge(
    "pillarbox_disk_short",
    "1 while a disk has too little space, so that new mail is refused, or does not answer; else 0.",
    over=GREATEST,
)

MIB = 1024 * 1024
LOOK_EVERY = 1.0
MEASURING_TIMEOUT = 0.25
"""Seconds that a caller waits for a measurement, once; on a disk that hangs only the thread keeps waiting."""
RETRY_SECONDS = 10

PART = 10
"""Percent of the disk that stay free …"""

ENOUGH = 1024 * MIB
"""… but not more than this, …"""

LEAST = 64 * MIB
"""… nor less than this, four segments of the database's log, …"""

SMALL_DISK_PART = 25
"""… unless the disk is so small that it would be more than this part of it, in percent."""


def disks_of(data: Path, blobs: str) -> list[Path]:
    """Return the folders that accepted mail goes to: blobs in files, and the embedded database if it
    is there."""
    place = urlsplit(blobs)
    cluster = data / POSTGRES_FOLDER
    found = [cluster] if cluster.is_dir() else []
    return [*found, Path(unquote(place.path))] if place.scheme == "file" else found


class Space(NamedTuple):
    """Bytes of the file system of a folder, and how many of them a program without rights may still use."""

    total: int
    free: int


class DiskFull(ServerOverloaded):
    """The disk is nearly full; nothing was accepted."""

    def __init__(self) -> None:
        super().__init__("There is no room to store this right now. Try again later.", RETRY_SECONDS)


def needed(total: int) -> int:
    """Return how many bytes stay free on a disk of this size."""
    return max(min(total * PART // 100, ENOUGH), min(LEAST, total * SMALL_DISK_PART // 100))


def space_of(folder: Path) -> Space | None:
    """Return the space of the file system that the folder is on, or will be; None where it is unknown."""
    for place in (folder, *folder.parents):
        try:
            found = os.statvfs(place)
        except FileNotFoundError:
            continue
        except OSError:
            return None
        return Space(found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize)
    return None


class DiskSpace:
    """Watches the disks that accepted mail goes to; looks at most once a second."""

    def __init__(
        self, clock: Clock, folders: Sequence[Path], measure: Callable[[Path], Space | None] = space_of
    ) -> None:
        self._clock = clock
        self._folders = folders
        self._measure = measure
        self._looked_at = float("-inf")
        self._is_short = False
        self._thread = ThreadPoolExecutor(1, "disk_space")
        self._measuring: Future[list[Space]] | None = None

    @property
    def is_short(self) -> bool:
        """Whether too little is free for new mail."""
        now = self._clock.boottime()
        if now - self._looked_at >= LOOK_EVERY:
            self._looked_at = now
            self._look()
        return self._is_short

    def check(self) -> None:
        """Raise `DiskFull` while too little is free."""
        if self.is_short:
            raise DiskFull

    def _look(self) -> None:
        if not self._folders:
            return
        is_new = self._measuring is None
        measuring = self._measuring or self._thread.submit(self._measured)
        try:
            found = measuring.result(MEASURING_TIMEOUT if is_new else 0)
        except TimeoutError:
            if not is_new and not self._is_short:
                log.warning("disk_space.disk_silent")
                self._is_short = True
            self._measuring = measuring
            return
        self._measuring = None
        self._compare(found)

    def _measured(self) -> list[Space]:
        return [space for folder in self._folders if (space := self._measure(folder)) is not None]

    def _compare(self, spaces: list[Space]) -> None:
        was_short = self._is_short
        self._is_short = any(space.free < needed(space.total) for space in spaces)
        if self._is_short != was_short:
            free = min([space.free for space in spaces], default=0) // MIB
            log.warning("disk_space.short" if self._is_short else "disk_space.enough", free_mib=free)
