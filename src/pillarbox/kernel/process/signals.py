"""The effects of signals on our processes: a drain, a look at renewed files, or nothing (OPS-03).

A process that a signal ends at once takes its open sessions with it, and the embedded database in the middle
of what they would have written: mail that was on the wire then goes out twice. So no signal that can be
caught does that, whoever sends it, to whichever of our processes.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable
from signal import Signals
from typing import Final

from pillarbox.kernel.observability import log

STOPPING: Final = (Signals.SIGTERM, Signals.SIGINT, Signals.SIGQUIT)
"""A drain; a second one ends the process at once."""

HANG_UP: Final = Signals.SIGHUP
"""Look at renewed files. Where the terminal that the process was started from is gone: a drain."""

UNUSED: Final = (
    Signals.SIGUSR1,
    Signals.SIGUSR2,
    Signals.SIGVTALRM,
    Signals.SIGIO,
    Signals.SIGPWR,
)
"""They mean nothing to us, and would end the process."""

ALARMS: Final = (Signals.SIGALRM, Signals.SIGPROF)
"""Of the watchdog of the event loop (`kernel.observability.loop_watchdog`); elsewhere they mean nothing."""

STANDARD_STREAMS: Final = (0, 1, 2)
CONTROLLING_TERMINAL: Final = "/dev/tty"
SECOND_LOOK: Final = 1.0
"""When a shell dies its jobs hear of it a moment before they lose their terminal."""

Handler = Callable[[Signals], None]
logger = log.get("signals")


def ignore_all_but_stops() -> None:
    """Ignore all signals but those that stop, in a process without an event loop that signals must not end.
    Processes that it forks inherit it until they have handlers of their own."""
    for number in (HANG_UP, *ALARMS, *UNUSED):
        # Not SIG_IGN, by which a process knows that nohup(1) started it.
        signal.signal(number, lambda *_: None)


def handle(*, stop: Handler, reload: Callable[[], None], stops: tuple[Signals, ...] = STOPPING) -> None:
    """Take over all signals in the running event loop: `stop` for `stops`, `reload` for hang-ups."""
    loop = asyncio.get_running_loop()
    for number in stops:
        loop.add_signal_handler(number, stop, number)
    for number in UNUSED:
        loop.add_signal_handler(number, _log_unused, number)
    for number in ALARMS:
        if signal.getsignal(number) is signal.SIG_DFL:
            # Not by the loop, which would hear of every alarm of the watchdog.
            signal.signal(number, lambda *_: None)
    loop.add_signal_handler(HANG_UP, reload)


def handle_with_terminal(
    *, stop: Handler, reload: Callable[[], None], stops: tuple[Signals, ...] = STOPPING
) -> None:
    """Handle the signals of a process that people start: it stops too when its terminal is gone. Under
    nohup(1) hang-ups stay ignored."""
    ignores = signal.getsignal(HANG_UP) is signal.SIG_IGN
    handle(stop=stop, reload=_nothing if ignores else _HangUps(stop, reload).received, stops=stops)


def _nothing() -> None:
    return


def _log_unused(number: Signals) -> None:
    logger.info("signal.ignored", signal=number.name)


class _HangUps:
    def __init__(self, stop: Handler, reload: Callable[[], None]) -> None:
        self._stop = stop
        self._reload = reload
        self._terminal = Terminal()
        self._is_over = False

    def received(self) -> None:
        if not self._stop_without_terminal():
            self._reload()
            if self._terminal.is_ours:
                asyncio.get_running_loop().call_later(SECOND_LOOK, self._stop_without_terminal)

    def _stop_without_terminal(self) -> bool:
        """Stop, once, if the terminal is gone."""
        if self._terminal.is_gone and not self._is_over:
            self._is_over = True
            self._stop(HANG_UP)
        return self._is_over


class Terminal:
    """The terminal that this process was started from, if any."""

    def __init__(self) -> None:
        self._streams = [stream for stream in STANDARD_STREAMS if os.isatty(stream)]
        self._controls = bool(self._streams) and _has_controlling_terminal()

    @property
    def is_ours(self) -> bool:
        """Whether there was one at the start."""
        return bool(self._streams)

    @property
    def is_gone(self) -> bool:
        """Whether there was one, and it was closed or taken away since."""
        if not all(os.isatty(stream) for stream in self._streams):
            return True
        return self._controls and not _has_controlling_terminal()


def _has_controlling_terminal() -> bool:
    with contextlib.suppress(OSError):
        os.close(os.open(CONTROLLING_TERMINAL, os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC))
        return True
    return False
