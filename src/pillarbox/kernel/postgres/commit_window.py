"""A short window in which messages wait for announced ones, so that one commit takes them all
(architecture 2.6).

A commit costs nearly the same for one message as for ten. A message waits only while others are expected, and
no longer than `AT_MOST`. A message that did not come within the window is not waited for again.
"""

from __future__ import annotations

import asyncio
from typing import Final

AT_MOST: Final = 0.006
"""Seconds: enough for a near sender to finish its message, and little compared with a commit."""


class ExpectedMessage:
    """A message that has been announced. It is expected until `gone`, which may be called repeatedly."""

    __slots__ = ("_turn", "_window")

    def __init__(self, window: CommitWindow, turn: int) -> None:
        self._window: CommitWindow | None = window
        self._turn = turn

    def gone(self) -> None:
        """Note that the message has arrived, or will not come."""
        if self._window is not None:
            self._window.one_less(self._turn)
            self._window = None


class CommitWindow:
    """The messages that wait, and how many are expected."""

    __slots__ = ("_at_most", "_expected", "_timer", "_turn", "_waiting")

    def __init__(self, at_most: float = AT_MOST) -> None:
        self._at_most = at_most
        self._expected = 0
        self._turn = 0
        self._waiting: list[asyncio.Future[None]] = []
        self._timer: asyncio.TimerHandle | None = None

    def expect(self) -> ExpectedMessage:
        """Expect one more message."""
        self._expected += 1
        return ExpectedMessage(self, self._turn)

    async def wait(self) -> None:
        """Return when no message is expected any more, or when the oldest waiting one has waited
        `at_most`."""
        if not self._expected:
            self._go()
            return
        loop = asyncio.get_running_loop()
        released: asyncio.Future[None] = loop.create_future()
        self._waiting.append(released)
        if self._timer is None:
            self._timer = loop.call_later(self._at_most, self._give_up)
        await released

    def one_less(self, turn: int) -> None:
        """Note that a message that was expected since this turn no longer is."""
        if turn == self._turn:
            self._expected -= 1
            if not self._expected:
                self._go()

    def _give_up(self) -> None:
        self._turn += 1
        self._expected = 0
        self._go()

    def _go(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        waiting, self._waiting = self._waiting, []
        for released in waiting:
            if not released.done():
                released.set_result(None)
