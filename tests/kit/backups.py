"""Backups of an installation that a test has made, and programs of PostgreSQL that do what a test wants."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pillarbox.kernel.settings.settings import PASSPHRASE_VARIABLE

PASSPHRASE = "twelve berths at the quay"


@contextmanager
def passphrase(text: str | None = PASSPHRASE) -> Iterator[None]:
    """Set the passphrase that commands of this process find in their environment."""
    before = os.environ.pop(PASSPHRASE_VARIABLE, None)
    if text is not None:
        os.environ[PASSPHRASE_VARIABLE] = text
    try:
        yield
    finally:
        os.environ.pop(PASSPHRASE_VARIABLE, None)
        if before is not None:
            os.environ[PASSPHRASE_VARIABLE] = before


def programs(folder: Path, *, major: int = 99, dump: str = "exit 1") -> Path:
    """Return a folder of programs of this version, with this shell script as pg_dump."""
    folder.mkdir()
    for name, script in (("postgres", f"echo 'postgres (PostgreSQL) {major}.1'"), ("pg_dump", dump)):
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(0o755)
    (folder / "initdb").symlink_to(folder / "postgres")
    return folder


def backups(target: Path) -> list[str]:
    """Return the backups that a command would find, the newest first."""
    return sorted((path.parent.name for path in target.glob("backups/[0-9]*/manifest.json")), reverse=True)


def unfinished(target: Path) -> list[Path]:
    return list(target.glob("backups/.*"))
