"""The data folder: one supervisor at a time, and a note for the commands that want to join it."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

LOCK_FILE = "lock"
RUN_FOLDER = "run"
NOTE_FILE = "supervisor.json"
POSTGRES_FOLDER = "postgres"
"""The cluster of the embedded database, where there is one."""


class FolderError(Exception):
    """The data folder cannot be used; the message is one sentence for the operator."""


class FolderInUse(FolderError):  # noqa: N818 (a state, reported as a sentence)
    """Another Pillarbox works on the folder."""


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the folder alone. The lock ends with this process, however that ends (flock(2))."""
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        (folder / RUN_FOLDER).mkdir(exist_ok=True, mode=0o700)
        descriptor = os.open(folder / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        reason = "it is not a folder" if isinstance(error, FileExistsError) else error.strerror
        raise FolderError(f"The data folder {folder} cannot be used: {reason}.") from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise FolderInUse(f"Another Pillarbox already runs with the data folder {folder}.") from None
    try:
        yield
    finally:
        note_path(folder).unlink(missing_ok=True)
        os.close(descriptor)


def note_path(folder: Path) -> Path:
    return folder / RUN_FOLDER / NOTE_FILE


def write_note(folder: Path, note: Mapping[str, object]) -> None:
    """Tell commands on this machine how to reach the running supervisor's database and listeners."""
    path = note_path(folder)
    draft = path.with_suffix(".new")
    draft.unlink(missing_ok=True)
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump(note, file)
    draft.rename(path)


def read_note(folder: Path) -> dict[str, Any] | None:
    """The running supervisor's note; None when there is none. FolderError if it cannot be read."""
    try:
        note: dict[str, Any] = json.loads(note_path(folder).read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None
    except OSError as error:
        raise FolderError(f"The data folder {folder} cannot be read: {error.strerror}.") from None
    return note
