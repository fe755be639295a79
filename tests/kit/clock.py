"""A clock that stands still until the test moves it."""

from __future__ import annotations

import asyncio
import heapq
import itertools
from datetime import UTC, datetime, timedelta

START = datetime(2026, 10, 3, 8, 15, tzinfo=UTC)


class ManualClock:
    """Both times move by `advance`, wall time alone by `jump`; sleepers wake in order of time."""

    def __init__(self, now: datetime = START) -> None:
        self._now = now
        self._boot = 1000.0
        self._sleepers: list[tuple[float, int, float, asyncio.Future[None]]] = []
        self._awaited: list[tuple[float, asyncio.Future[None]]] = []
        self._order = itertools.count()

    def now(self) -> datetime:
        return self._now

    def boottime(self) -> float:
        return self._boot

    async def sleep(self, seconds: float) -> None:
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._boot + seconds, next(self._order), seconds, woken))
        for wanted, seen in self._awaited:
            if wanted == seconds and not seen.done():
                seen.set_result(None)
        await woken

    async def slept(self, seconds: float) -> None:
        """Return when somebody sleeps who asked for just so long.

        A round of work that is still under way when time moves on sleeps from then on: a test that wants the
        next round moves time only when the last one is over.
        """
        if not any(asked == seconds and not woken.done() for _, _, asked, woken in self._sleepers):
            seen: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._awaited.append((seconds, seen))
            try:
                await seen
            finally:
                self._awaited.remove((seconds, seen))

    def advance(self, by: timedelta | float) -> None:
        """Move time on; whoever slept until then wakes at the next turn of the loop."""
        seconds = by.total_seconds() if isinstance(by, timedelta) else by
        self._boot += seconds
        self._now += timedelta(seconds=seconds)
        while self._sleepers and self._sleepers[0][0] <= self._boot:
            woken = heapq.heappop(self._sleepers)[3]
            if not woken.done():
                woken.set_result(None)

    def wake(self, seconds: float) -> None:
        """Wake whoever sleeps for just so long; time stands still."""
        for _, _, asked, woken in self._sleepers:
            if asked == seconds and not woken.done():
                woken.set_result(None)

    def jump(self, by: timedelta | float) -> None:
        """Set the wall clock, as an administrator or a wrong time server does; boot time stays."""
        self._now += by if isinstance(by, timedelta) else timedelta(seconds=by)

    def set(self, now: datetime) -> None:
        """Jump to an instant ahead."""
        self.advance(now - self._now)
