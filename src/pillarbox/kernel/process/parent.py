"""Parents and children (prctl(2)): ending with a parent, adopting orphans.

A process that is to be small imports it: nothing else is loaded here.
"""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Callable

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36

_libc = ctypes.CDLL(None, use_errno=True)


def bind_to_parent(death_signal: signal.Signals) -> Callable[[], None]:
    """Return a function for `preexec_fn`: the child gets `death_signal` when the calling thread's process
    is gone.

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
    """Let this process get `death_signal` when its parent is gone."""
    _libc.prctl(PR_SET_PDEATHSIG, int(death_signal))


def adopt_orphans() -> None:
    """Adopt orphans: processes further down whose parent dies become children of this one, not of init."""
    _libc.prctl(PR_SET_CHILD_SUBREAPER, 1)
