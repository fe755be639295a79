"""The folder in which a drill restores a backup: it holds everybody's mail, so it goes with the drill.

A drill that is killed cannot remove its folder. The next one does: a folder is in use while somebody holds
its lock, which ends with the process.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from pillarbox.backup.target import SCRATCH, sentences

PREFIX: Final = "pillarbox-drill-"


@contextmanager
def drill_folder() -> Iterator[Path]:
    """A new folder among the temporary files, gone when the block is over; what killed drills have left there
    goes first."""
    with sentences(SCRATCH):
        remove_left(Path(tempfile.gettempdir()))
        folder, lock = _made()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def _made() -> tuple[Path, int]:
    """A new folder and its lock. Before it was locked, another drill may have removed it."""
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
