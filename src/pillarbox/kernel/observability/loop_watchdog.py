"""Notices when something keeps the event loop of this process from its other work.

A callback on the loop notes the time 20 times a second. When it comes late by more than 100 ms, one line
`loop.stalled` is logged with what the loop's thread was doing meanwhile (a stall of less than 150 ms may have
begun before the callback was due, and then goes without). That is seen by a thread of its
own, which looks at the stack of the loop's thread while the callback is late. Code that holds Python's lock
all the time (a long call of a C library) keeps that thread waiting, too: it looks the moment the call
returns, so the stack then names the caller.

`cpu_ms` is the processor time of the loop's thread meanwhile, `process_cpu_ms` that of all threads. A loop
that computed has used as much as the stall was long; where only the process has, another thread held
Python's lock; where neither has, the machine had no time for the process, or the loop waited for a disk.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Final, NamedTuple

from pillarbox.kernel.observability.log import get
from pillarbox.kernel.observability.metrics import SECONDS, Histogram

log = get("loop_watchdog")

BEAT: Final = 0.05
STALL: Final = 0.1
LOOKS_EVERY: Final = 0.05
MOST_FRAMES: Final = 16

LAG = Histogram(
    "pillarbox_loop_lag_seconds",
    "How late the event loop of a process ran a callback that is due 20 times a second.",
    SECONDS,
    ("process",),
)

_PACKAGES = Path(__file__).parents[2]


class Stall(NamedTuple):
    """How long the loop stood still, the processor time of its thread and of all threads meanwhile (in
    seconds), and where it was: the innermost function first, empty where the stack could not be read."""

    late: float
    cpu: float
    process_cpu: float
    stack: tuple[str, ...]


def report(stall: Stall) -> None:
    """The line in the log."""
    log.warning(
        "loop.stalled",
        ms=round(stall.late * 1000),
        cpu_ms=round(stall.cpu * 1000),
        process_cpu_ms=round(stall.process_cpu * 1000),
        where=stall.stack[0] if stall.stack else "unknown",
        stack=" < ".join(stall.stack),
    )


class LoopWatchdog:
    """Watches the loop that `start` is called on; `process` names the kind of process in the histogram, and
    `on_stall` is called on the loop after each stall."""

    def __init__(self, process: str = "worker", on_stall: Callable[[Stall], None] = report) -> None:
        self._labels = (process,)
        self._on_stall = on_stall
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="pillarbox-watchdog", daemon=True)
        self._watched = 0
        self._due = 0.0
        self._cpu = 0.0
        self._process_cpu = 0.0
        self._seen: tuple[str, ...] = ()
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Begin to watch the running loop."""
        self._watched = threading.get_ident()
        self._expect(asyncio.get_running_loop())
        self._thread.start()

    def stop(self) -> None:
        """Watch no more; also where it was never started."""
        self._stopped.set()
        if self._timer is not None:
            self._timer.cancel()
            self._thread.join()

    # On the loop -------------------------------------------------------------------------------------

    def _expect(self, loop: asyncio.AbstractEventLoop) -> None:
        self._cpu, self._process_cpu = time.thread_time(), time.process_time()
        self._due = time.monotonic() + BEAT
        self._timer = loop.call_later(BEAT, self._beat, loop)

    def _beat(self, loop: asyncio.AbstractEventLoop) -> None:
        late = max(0.0, time.monotonic() - self._due)
        LAG.observe(late, self._labels)
        if late > STALL:
            cpu, process_cpu = time.thread_time() - self._cpu, time.process_time() - self._process_cpu
            self._on_stall(Stall(late, cpu, process_cpu, self._seen))
        self._seen = ()
        self._expect(loop)

    # In the thread -----------------------------------------------------------------------------------

    def _watch(self) -> None:
        while not self._stopped.wait(LOOKS_EVERY):
            due = self._due
            if self._seen or time.monotonic() - due < LOOKS_EVERY:
                continue
            frame = sys._current_frames().get(self._watched)
            seen = _stack(frame)
            # A look that came too late, after the callback, is not of this stall.
            if due == self._due:
                self._seen = seen


def _stack(frame: FrameType | None) -> tuple[str, ...]:
    """Where the thread is, innermost first: places in the program and names of functions, no values."""
    found: list[str] = []
    while frame is not None and len(found) < MOST_FRAMES:
        code = frame.f_code
        found.append(f"{_short(code.co_filename)}:{frame.f_lineno} {code.co_qualname}")
        frame = frame.f_back
    return tuple(found)


def _short(path: str) -> str:
    """The file below the folder of packages that it lies in."""
    if path.startswith(str(_PACKAGES)):
        return path[len(str(_PACKAGES)) + 1 :]
    return "/".join(Path(path).parts[-2:])
