"""Small disks that a test may fill: file systems in memory, where this account may mount one."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

MIB = 1024 * 1024


class Disk:
    """A mounted file system."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._ballast = folder / "ballast"

    @property
    def free(self) -> int:
        return shutil.disk_usage(self.folder).free

    def fill(self, *, leaving: int = 0) -> None:
        """Take up everything but so many bytes."""
        with open(self._ballast, "ab") as ballast:
            while (wanted := self.free - leaving) > 0:
                try:
                    os.posix_fallocate(ballast.fileno(), ballast.tell(), wanted)
                    ballast.seek(0, os.SEEK_END)
                except OSError:
                    # Somebody else took some of it at this moment.
                    continue

    def relieve(self) -> None:
        """Give back what `fill` took."""
        self._ballast.unlink(missing_ok=True)

    def set_read_only(self, read_only: bool) -> None:
        mode = "ro" if read_only else "rw"
        subprocess.run(["mount", "-o", f"remount,{mode}", str(self.folder)], check=True)


@contextmanager
def small_disk(folder: Path, mib: int) -> Iterator[Disk]:
    """Yield a disk of so many MiB; skip the test, with its reason, where mounting is not allowed."""
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={mib}m,mode=0755", "none", str(folder)],
        capture_output=True,
        text=True,
    )
    if mounted.returncode != 0:
        pytest.skip(f"no file system may be mounted here: {mounted.stderr.strip()}")
    try:
        yield Disk(folder)
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)
