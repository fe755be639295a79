"""A moment in which messages wait for those that are about to come, so that one commit takes them all
(architecture 2.6).

A commit costs nearly the same for one message as for ten. Whoever is alone does not wait, nobody waits once
there is nobody left to wait for, nor longer than `AT_MOST`, and for one who was waited for in vain nobody
waits a second time.
"""

from __future__ import annotations

import asyncio
from typing import Final

AT_MOST: Final = 0.006
"""Seconds: enough for a sender near by to say the rest of what it has to say, and little beside a commit."""


class Expected:
    """A message that has been announced. It is expected until `gone`, which may be said again and again."""

    __slots__ = ("_gathering", "_turn")

    def __init__(self, gathering: CommitWindow, turn: int) -> None:
        self._gathering: CommitWindow | None = gathering
        self._turn = turn

    def gone(self) -> None:
        """It is there, or it will not come."""
        if self._gathering is not None:
            self._gathering.one_less(self._turn)
            self._gathering = None


class CommitWindow:
    """Who is waiting, and how many are expected."""

    __slots__ = ("_at_most", "_expected", "_timer", "_turn", "_waiting")

    def __init__(self, at_most: float = AT_MOST) -> None:
        self._at_most = at_most
        self._expected = 0
        self._turn = 0
        self._waiting: list[asyncio.Future[None]] = []
        self._timer: asyncio.TimerHandle | None = None

    def expect(self) -> Expected:
        """One more will come."""
        self._expected += 1
        return Expected(self, self._turn)

    async def company(self) -> None:
        """Return when nobody is expected any more, or when the first of those who wait has waited enough."""
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
        """One who was expected since this turn is not any more."""
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
