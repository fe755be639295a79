"""Which mails of a process may be past their final dot, in a file that outlives the process (DUR-13).

A process that dies may have had a thousand items in memory, of which servers may have taken as many as it
had connections open. Before each final dot the item is written into a file in memory (`/dev/shm`), and
taken out when its outcome is committed: a microsecond each, and a killed process loses nothing of it.
Whoever frees the items of a dead process of this machine reads the file, and only what stands there
counts as uncertain. Where there is no file, or the machine itself went down, all of them do
(docs/decisions/0157).
"""

from __future__ import annotations

import contextlib
import os
import struct
import time
from collections.abc import Collection
from pathlib import Path
from typing import Final
from uuid import UUID

from pillarbox.delivery.items import Key
from pillarbox.kernel.observability.log import get

log = get("delivery")

SLOTS: Final = 512
"""More than a process makes attempts at once; beyond them it says that all may be."""

SLOT: Final = struct.Struct(">?16s16sh")
SIZE: Final = 1 + SLOTS * SLOT.size
MEMORY: Final = Path("/dev/shm")  # noqa: S108 - names are random, files are made anew, and only ours are read
PREFIX: Final = "pillarbox-final-dots-"
KEPT_SECONDS: Final = 7 * 86400
"""How long a file stays that nobody has written or removed."""


def folder_of(data: Path) -> Path:
    """Return the folder where the processes of this machine have their files."""
    return MEMORY if os.access(MEMORY, os.W_OK) else data


class FinalDots:
    """Of one process: `note` right before the final dot, `forget` once the outcome is committed."""

    def __init__(self, folder: Path, process: UUID) -> None:
        self._folder = folder
        self._process = process
        self._file: int | None = None
        self._slots: dict[Key, int] = {}
        self._free = list(range(SLOTS))

    def open(self) -> None:
        """Make the file; without one all items of this process count as offered when it dies."""
        try:
            _remove_old(self._folder)
            flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            self._file = os.open(_path(self._folder, self._process), flags, 0o600)
        except OSError as trouble:
            log.warning("delivery.final_dots_not_kept", trouble=repr(trouble)[:200])
            return
        self._write(0, bytes(SIZE))

    def note(self, key: Key) -> None:
        """Say that the server may take this item from now on."""
        if self._file is None or key in self._slots:
            return
        if not self._free:
            self._write(0, b"\x01")
            return
        slot = self._slots[key] = self._free.pop()
        team_id, email_id, grp = key
        self._write(1 + slot * SLOT.size, SLOT.pack(True, team_id.bytes, email_id.bytes, grp))

    def forget(self, key: Key) -> None:
        """Forget the item: its outcome is committed, or there was none."""
        slot = self._slots.pop(key, None)
        if slot is not None:
            self._write(1 + slot * SLOT.size, b"\x00")
            self._free.append(slot)

    def close(self) -> None:
        """Remove the file if all outcomes are committed."""
        if self._file is not None:
            os.close(self._file)
            self._file = None
            if not self._slots:
                remove(self._folder, self._process)

    def _write(self, offset: int, content: bytes) -> None:
        """Write the file. Without room for it nobody knows any more what was offered, and the file
        says nothing."""
        if self._file is None:
            return
        try:
            os.pwrite(self._file, content, offset)
        except OSError as trouble:
            log.warning("delivery.final_dots_not_kept", trouble=repr(trouble)[:200])
            os.close(self._file)
            self._file = None
            remove(self._folder, self._process)


def read(folder: Path, process: UUID) -> Collection[Key] | None:
    """Return the items of a dead process that were offered without a committed outcome; None if unknown."""
    try:
        with _path(folder, process).open("rb") as file:
            if os.fstat(file.fileno()).st_uid != os.geteuid():
                return None
            content = file.read(SIZE + 1)
    except OSError:
        return None
    if len(content) != SIZE or content[0]:
        return None
    slots = SLOT.iter_unpack(content[1:])
    return {
        (UUID(bytes=team_id), UUID(bytes=email_id), grp) for used, team_id, email_id, grp in slots if used
    }


def remove(folder: Path, process: UUID) -> None:
    """Remove the file of a process that has nothing left."""
    with contextlib.suppress(OSError):
        _path(folder, process).unlink()


def _path(folder: Path, process: UUID) -> Path:
    return folder / f"{PREFIX}{process}"


def _remove_old(folder: Path) -> None:
    before = time.time() - KEPT_SECONDS
    for path in folder.glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            if path.stat().st_mtime < before:
                path.unlink()
