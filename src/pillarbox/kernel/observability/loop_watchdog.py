"""Notices when something keeps the event loop of this process from its other work.

A callback on the loop notes the time 20 times a second, or 4 times while the process does nothing: being
woken costs an idle process more than all else it does. When it comes late by more than 100 ms, one line
`loop.stalled` is logged with what the loop was doing meanwhile. A stall of less than 150 ms may have begun
before the callback was due; then the line goes without. Each callback sets the alarm of the process (SIGALRM)
to the time at which the next one will be late, and the next one sets it anew. So only a stall lets it come:
it interrupts the main thread, which runs the loop, and its handler reads the stack that it interrupted. A
thread that reads the stack now and then would see the same, but takes Python's lock from the loop each time:
that was six per cent of the cost of accepting a mail.

A process counts as idle when it has used little of the processor for a second. It stays so until it has used
some milliseconds in a row: then the kernel says so (SIGPROF), and the callback is due at once. So a loop that
computes is found as in a busy process; one that only waits (for a disk, say) in an idle process when it does
so for `IDLE_BEAT + STALL`, before that by chance.

Code that holds Python's lock all the time (a long call of a C library) is interrupted when the call returns,
so the stack then names the caller.

`cpu_ms` is the processor time of the loop's thread meanwhile, `process_cpu_ms` that of all threads. A loop
that computed has used as much as the stall was long; where only the process has, another thread held
Python's lock; where neither has, the machine had no time for the process, or the loop waited for a disk.
"""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, Final, NamedTuple

from pillarbox.kernel.observability.log import get
from pillarbox.kernel.observability.metrics import SECONDS, Histogram

log = get("loop_watchdog")

BEAT: Final = 0.05
IDLE_BEAT: Final = 0.25
IDLE_AFTER: Final = 20
"""Beats; in them an idle process has used no more than `IDLE_CPU` seconds of the processor."""
IDLE_CPU: Final = 0.01
BUSY_CPU: Final = 0.005
"""Seconds of the processor that a process uses within one beat when it is no longer idle."""
STALL: Final = 0.1
LOOK_AFTER: Final = 0.05
"""Seconds after a callback was due at which the stack is read."""
MOST_FRAMES: Final = 16

LAG = Histogram(
    "pillarbox_loop_lag_seconds",
    "How late the event loop of a process ran a callback that is due 20 times a second (idle: 4 times).",
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
    """Write the line in the log."""
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
    `on_stall` is called on the loop after each stall. The loop must run in the main thread, and the process
    has one watchdog at a time: there is one alarm, see setitimer(2)."""

    def __init__(self, process: str = "worker", on_stall: Callable[[Stall], None] = report) -> None:
        self._labels = (process,)
        self._on_stall = on_stall
        self._due = 0.0
        self._cpu = 0.0
        self._process_cpu = 0.0
        self._seen: tuple[str, ...] = ()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.Handle | None = None
        self._before: dict[signal.Signals, tuple[Any, float]] = {}
        self._beats = 0
        self._cpu_then = 0.0
        """Processor time of the process when beats were counted from 0."""

    @property
    def is_idle(self) -> bool:
        """Whether it looks less often, because the process does nothing."""
        return self._beats == IDLE_AFTER

    def start(self) -> None:
        """Begin to watch the running loop."""
        for number, (timer, handler) in self._timers().items():
            before = signal.signal(number, handler) or signal.SIG_DFL
            # System calls that it interrupts go on, in whatever library they are.
            signal.siginterrupt(number, False)
            self._before[number] = before, signal.getitimer(timer)[0]
        self._loop = asyncio.get_running_loop()
        self._beats, self._cpu_then = 0, time.process_time()
        self._expect(self._loop)

    def stop(self) -> None:
        """Watch no more, and leave the alarms as they were; also where it was never started."""
        if self._timer is None:
            return
        self._timer.cancel()
        self._timer = self._loop = None
        for number, (timer, _) in self._timers().items():
            handler, left = self._before[number]
            signal.setitimer(timer, 0)
            signal.signal(number, handler)
            signal.setitimer(timer, left)

    def _timers(self) -> dict[signal.Signals, tuple[int, Callable[[int, FrameType | None], None]]]:
        return {
            signal.SIGALRM: (signal.ITIMER_REAL, self._look),
            signal.SIGPROF: (signal.ITIMER_PROF, self._wake),
        }

    def _expect(self, loop: asyncio.AbstractEventLoop) -> None:
        self._cpu, self._process_cpu = time.thread_time(), time.process_time()
        if self._beats < IDLE_AFTER:
            self._beats += 1
            if self._beats == IDLE_AFTER and self._process_cpu - self._cpu_then > IDLE_CPU:
                self._beats, self._cpu_then = 0, self._process_cpu
        beat = BEAT
        if self.is_idle:
            beat = IDLE_BEAT
            signal.setitimer(signal.ITIMER_PROF, BUSY_CPU)
        self._due = time.monotonic() + beat
        self._timer = loop.call_later(beat, self._beat, loop)
        signal.setitimer(signal.ITIMER_REAL, beat + LOOK_AFTER)

    def _beat(self, loop: asyncio.AbstractEventLoop) -> None:
        late = max(0.0, time.monotonic() - self._due)
        LAG.observe(late, self._labels)
        if late > STALL:
            cpu, process_cpu = time.thread_time() - self._cpu, time.process_time() - self._process_cpu
            self._on_stall(Stall(late, cpu, process_cpu, self._seen))
        self._seen = ()
        self._expect(loop)

    def _wake(self, _: int, __: FrameType | None) -> None:
        """Note that the process is idle no more: the next callback is due now, unless it is already."""
        now = time.monotonic()
        if self._loop is None or self._timer is None or not self.is_idle:
            return
        self._beats, self._cpu_then = 0, time.process_time()
        if now < self._due:
            self._timer.cancel()
            self._due = now
            self._timer = self._loop.call_soon(self._beat, self._loop)
            signal.setitimer(signal.ITIMER_REAL, LOOK_AFTER)

    def _look(self, _: int, frame: FrameType | None) -> None:
        """Handle the alarm: the callback is late."""
        # Where the process itself stood still, the callback and the alarm come at once.
        if frame is not None and frame.f_code not in _OWN:
            self._seen = _stack(frame)


_OWN = frozenset(method.__code__ for method in (LoopWatchdog._beat, LoopWatchdog._expect, LoopWatchdog._wake))


def _stack(frame: FrameType | None) -> tuple[str, ...]:
    """Return where the thread is, innermost first: places in the program and names of functions,
    no values."""
    found: list[str] = []
    while frame is not None and len(found) < MOST_FRAMES:
        code = frame.f_code
        found.append(f"{_short(code.co_filename)}:{frame.f_lineno} {code.co_qualname}")
        frame = frame.f_back
    return tuple(found)


def _short(path: str) -> str:
    """Return the file below the folder of packages that it lies in."""
    if path.startswith(str(_PACKAGES)):
        return path[len(str(_PACKAGES)) + 1 :]
    return "/".join(Path(path).parts[-2:])
