"""Questions of a command to the person at the terminal. Signals end it while it waits for the answer."""

from __future__ import annotations

import getpass
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import typer

from pillarbox.kernel.terminal.answers import CommandRefused, clean

YES = ("y", "yes")
NO = ("", "n", "no")
STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGQUIT, signal.SIGHUP)


def confirm(question: str) -> None:
    """Return where the answer is yes; Refused where it is no, or nobody answers."""
    while True:
        try:
            with ended_by_signals():
                typer.echo(f"{clean(question)} [y/N]: ", nl=False, err=True)
                answer = input().strip().lower()
        except EOFError:
            typer.echo(err=True)
            raise CommandRefused("Nobody answers here, so nothing was changed; --yes does not ask.") from None
        except ValueError:
            raise CommandRefused("The answer is no text, so nothing was changed.") from None
        if answer in YES:
            return
        if answer in NO:
            raise CommandRefused("Nothing was changed.")


def secret(prompt: str) -> str | None:
    """Return a text that is typed without being shown; None without a terminal, or where its input ends."""
    if not sys.stdin.isatty():
        return None
    try:
        with ended_by_signals():
            return getpass.getpass(f"{prompt}: ", sys.stderr)
    except EOFError:
        typer.echo(err=True)
        return None


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """Let a signal end the wait: the handlers of an event loop only run when it is over."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in STOPS}
    try:
        for number, handler in before.items():
            if handler is not signal.SIG_IGN:
                signal.signal(number, _end)
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _end(number: int, _: FrameType | None) -> None:
    raise SystemExit(128 + number)
