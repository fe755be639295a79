"""The data folder: one supervisor at a time, and a note for the commands that want to join it.

The note says which process of which machine works on the folder, and which folder that is. So a copy that was
made of it meanwhile is known as one, and nobody takes the note in it for a server of its own.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pillarbox.kernel.process.process_table import boot_id, started

LOCK_FILE = "lock"
RUN_FOLDER = "run"
NOTE_FILE = "supervisor.json"
LOCK_PAUSES = (0.01, 0.02, 0.05, 0.1)
POSTGRES_FOLDER = "postgres"
"""The cluster of the embedded database, where there is one."""


RESTORING = ".restoring"
"""In a data folder while a backup is brought into it."""


class FolderError(Exception):
    """The data folder cannot be used; the message is one sentence for the operator."""


class FolderInUse(FolderError):  # noqa: N818 (a state, reported as a sentence)
    """Another Pillarbox works on the folder."""

    def __init__(self, folder: Path) -> None:
        note = read_note(folder)
        who = f" ({_worker(note)})" if note is not None and is_alive(note) else ""
        super().__init__(f"Another Pillarbox{who} already runs with the data folder {folder}.")


class CopiedFolder(FolderError):  # noqa: N818 (a state, reported as a sentence)
    """A database was copied while it changed: its files do not fit each other."""

    def __init__(self, folder: Path, note: Mapping[str, Any]) -> None:
        super().__init__(
            f"The data folder {folder} is a copy that was made while Pillarbox ({_worker(note)}) worked on "
            "the original, so its database may be damaged: stop that server and copy again, or restore a "
            "backup (docs/guide/backup.md); if it had ended before the copy was made, remove "
            f"{note_path(folder)}."
        )


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the folder alone. The lock ends with this process, however that ends (flock(2)).

    A block that ends with an exception leaves nothing of a lock, a folder `run` or a data folder that this
    call made, unless something else was stored there meanwhile.
    """
    descriptor, created = _lock(folder)
    try:
        _refuse_torn_copy(folder)
        try:
            yield
        finally:
            note_path(folder).unlink(missing_ok=True)
    except BaseException:
        # Under the lock: whoever opened the file meanwhile sees that it is gone, and makes another.
        _remove(folder, created)
        raise
    finally:
        os.close(descriptor)


def _lock(folder: Path) -> tuple[int, list[Path]]:
    """Return the descriptor of the lock, held, and the paths that were made for it. A command that only looks
    whether the lock is free (`is_in_use`) is waited for; a lock that its holder removes is made again."""
    created: list[Path] = []
    for pause in LOCK_PAUSES:
        descriptor = _open_lock(folder, created)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_same(descriptor, folder / LOCK_FILE):
                return descriptor, created
            os.close(descriptor)
        except BlockingIOError:
            os.close(descriptor)
            time.sleep(pause)
    raise FolderInUse(folder)


def _open_lock(folder: Path, created: list[Path]) -> int:
    """Open the lock; paths that are made for it are appended to `created`, the outermost first."""
    run, lock = folder / RUN_FOLDER, folder / LOCK_FILE
    try:
        created += [path for path in (*reversed(folder.parents), folder, run, lock) if not path.exists()]
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        run.mkdir(exist_ok=True, mode=0o700)
        return os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        reason = "it is not a folder" if isinstance(error, FileExistsError) else error.strerror
        raise FolderError(f"The data folder {folder} cannot be used: {reason}.") from None


def _is_same(descriptor: int, path: Path) -> bool:
    """Return whether the open file is the one that has this name."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def _remove(folder: Path, created: Sequence[Path]) -> None:
    """Remove what a refused start has made, while nothing else is in the folder that came with it."""
    run, lock = folder / RUN_FOLDER, folder / LOCK_FILE
    if lock not in created or (folder in created and {*folder.iterdir()} - {run, lock}):
        return
    with contextlib.suppress(OSError):
        if run in created:
            shutil.rmtree(run)
        lock.unlink()
        for path in reversed(created):
            if path not in (run, lock):
                path.rmdir()


def is_in_use(folder: Path) -> bool:
    """Return whether another Pillarbox holds the folder; nothing is written to find out."""
    try:
        descriptor = os.open(folder / LOCK_FILE, os.O_RDONLY | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise FolderError(f"The data folder {folder} cannot be used: {error.strerror}.") from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def _refuse_torn_copy(folder: Path) -> None:
    """Raise CopiedFolder where a server worked on the original of this folder while it was copied.

    A note that was left in its own folder is that of a server that was killed: its database recovers. So does
    one in a snapshot of the whole file system, where the folder is the same.
    """
    note = _any_note(folder)
    if note is not None and _is_of_another(note, folder) and (folder / POSTGRES_FOLDER).is_dir():
        raise CopiedFolder(folder, note)


def identity(folder: Path) -> str:
    """Return a text that a copy of this folder does not share, and that stays when it is mounted or moved."""
    return f"{folder.stat().st_ino}.{(folder / LOCK_FILE).stat().st_ino}"


def is_alive(note: Mapping[str, Any]) -> bool:
    """Return whether the process that wrote the note runs on this machine."""
    return note.get("boot") == boot_id() and started(note["pid"]) == note.get("pid_start")


def _worker(note: Mapping[str, Any]) -> str:
    """Return the process of a note, for people."""
    machine = f" on {note['machine']}" if "machine" in note else ""
    return f"process {note['pid']}{machine}"


def refuse_unfinished(folder: Path) -> None:
    """Raise FolderError where a restore was interrupted: a server would make a new database there."""
    if (folder / RESTORING).exists():
        raise FolderError(f"A restore into {folder} was not finished; remove the folder and restore again.")


def note_path(folder: Path) -> Path:
    return folder / RUN_FOLDER / NOTE_FILE


def write_note(folder: Path, note: Mapping[str, object]) -> None:
    """Tell commands on this machine how to reach the running supervisor's database and listeners, and which
    process that is."""
    pid = os.getpid()
    note = {
        "pid": pid,
        "pid_start": started(pid),
        "machine": socket.gethostname(),
        "boot": boot_id(),
        "folder": identity(folder),
        **note,
    }
    path = note_path(folder)
    draft = path.with_suffix(".new")
    draft.unlink(missing_ok=True)
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump(note, file)
    draft.rename(path)


def read_note(folder: Path) -> dict[str, Any] | None:
    """Return the note of the supervisor that runs, or was killed, on this folder; None when there is none.
    Raise FolderError if it cannot be read."""
    note = _any_note(folder)
    return None if note is None or _is_of_another(note, folder) else note


def _any_note(folder: Path) -> dict[str, Any] | None:
    """Return the note in the folder, if it was copied with it, too."""
    try:
        note: dict[str, Any] = json.loads(note_path(folder).read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None
    except OSError as error:
        raise FolderError(f"The data folder {folder} cannot be read: {error.strerror}.") from None
    return note


def _is_of_another(note: Mapping[str, Any], folder: Path) -> bool:
    """Return whether the note was written in another folder, and copied."""
    try:
        return "folder" in note and note["folder"] != identity(folder)
    except FileNotFoundError:
        return True
