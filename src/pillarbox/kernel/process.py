"""Children that die with their parent, and processes known by more than their number."""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Callable

PR_SET_PDEATHSIG = 1

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


def is_alive(pid: int) -> bool:
    """Whether a process of that number runs (a zombie does not)."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:
            return stat.read().rsplit(b")", 1)[1].split()[0] not in (b"Z", b"X")
    except OSError:
        return False
