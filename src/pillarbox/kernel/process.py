"""Children that die with their parent, and processes known by more than their number."""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import subprocess
from collections.abc import Callable

PR_SET_PDEATHSIG = 1
POLL = 0.05

_libc = ctypes.CDLL(None, use_errno=True)


def bind_to_parent(death_signal: signal.Signals) -> Callable[[], None]:
    """For `preexec_fn`: the child gets `death_signal` when the calling thread's process is gone.

    prctl(2): the setting is cleared by a change of credentials, so it must come after setuid;
    subprocess runs `preexec_fn` last.
    """
    parent = os.getpid()
    number = int(death_signal)

    def bind() -> None:
        _libc.prctl(PR_SET_PDEATHSIG, number)
        if os.getppid() != parent:
            os.kill(os.getpid(), number)

    return bind


def die_with_parent(death_signal: signal.Signals) -> None:
    """This process gets `death_signal` when its parent is gone."""
    _libc.prctl(PR_SET_PDEATHSIG, int(death_signal))


def is_alive(pid: int) -> bool:
    """Whether a process of that number runs (a zombie does not)."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:
            return stat.read().rsplit(b")", 1)[1].split()[0] not in (b"Z", b"X")
    except OSError:
        return False


async def ended(process: subprocess.Popen[bytes]) -> int:
    """The exit status, once the child has ended; holds no thread meanwhile (pidfd_open(2))."""
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


async def polled(process: subprocess.Popen[bytes]) -> None:
    """For systems without pidfds."""
    while process.poll() is None:  # noqa: ASYNC110 (the event is in the operating system)
        await asyncio.sleep(POLL)
