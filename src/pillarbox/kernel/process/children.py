"""Child processes: who they are, and waiting for their end."""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Protocol

POLL = 0.05
PPID = 1
ARG_START, ARG_END = 45, 46
"""Fields of /proc/PID/stat behind the name (proc(5), where they are the 4th, 48th and 49th)."""

STATUS_LOST = 255


class Child(Protocol):
    """The common interface of `subprocess.Popen` and `AdoptedProcess`."""

    @property
    def pid(self) -> int: ...

    def poll(self) -> int | None: ...

    def wait(self) -> int: ...


class AdoptedProcess:
    """A child that another process forked and that this process adopted; only this process may wait for
    it."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._status: int | None = None

    def poll(self) -> int | None:
        """Return the exit status, negative for a signal; None while it runs."""
        return self._wait(os.WNOHANG)

    def wait(self) -> int:
        """Return the exit status, once it has ended."""
        status = self._wait(0)
        return STATUS_LOST if status is None else status

    def _wait(self, options: int) -> int | None:
        if self._status is None:
            try:
                found, status = os.waitpid(self.pid, options)
            except ChildProcessError:
                self._status = STATUS_LOST
            else:
                self._status = os.waitstatus_to_exitcode(status) if found else None
        return self._status

    def send_signal(self, number: signal.Signals) -> None:
        """Signal it, if it still runs; its number cannot be another's before we have waited for it."""
        if self.poll() is None:
            os.kill(self.pid, number)


def reap_orphans(ours: Collection[int]) -> None:
    """Reap dead children that no code waits for; `ours` are the children that some code does wait for."""
    for pid in children():
        if pid not in ours:
            with suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)


def children() -> Iterator[int]:
    """Yield the children of this process, the dead ones included."""
    own = str(os.getpid()).encode()
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            with suppress(OSError):
                if stat_fields(entry.name)[PPID] == own:
                    yield int(entry.name)


def rename(old: str, new: str) -> None:
    """Say `new` instead of `old` where the system shows the command line of this process; `new` must not be
    longer. Where that cannot be done, the old name stays."""
    with suppress(OSError, ValueError, IndexError):
        fields = stat_fields("self")
        start, end = int(fields[ARG_START]), int(fields[ARG_END])
        before = ctypes.string_at(start, end - start) if start else b""
        if before != Path("/proc/self/cmdline").read_bytes():
            return
        after = before.replace(old.encode(), new.encode(), 1).ljust(len(before), b"\0")
        ctypes.memmove(start, after, len(before))


def stat_fields(pid: str) -> list[bytes]:
    """Return the fields of /proc/PID/stat that follow the name."""
    return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()


def is_alive(pid: int) -> bool:
    """Return whether a process of that number runs (a zombie does not)."""
    try:
        return stat_fields(str(pid))[0] not in (b"Z", b"X")
    except OSError:
        return False


async def ended(process: Child) -> int:
    """Return the exit status, once the child has ended; holds no thread meanwhile (pidfd_open(2))."""
    if process.poll() is None:
        try:
            descriptor = os.pidfd_open(process.pid)
        except OSError:
            await polled(process)
        else:
            await readable(descriptor)
    return process.wait()


async def readable(descriptor: int) -> None:
    """Return when the descriptor can be read, and close it."""
    loop = asyncio.get_running_loop()
    done = asyncio.Event()
    loop.add_reader(descriptor, done.set)
    try:
        await done.wait()
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)


async def polled(process: Child) -> None:
    """Wait for the end of a process by asking for it, on systems without pidfds."""
    while process.poll() is None:  # noqa: ASYNC110 (the event is in the operating system)
        await asyncio.sleep(POLL)
