"""A clock that is moved by a script: a month passes in seconds."""

from __future__ import annotations

import asyncio
import heapq
import itertools
from datetime import datetime, timedelta


class ScriptedClock:
    """Wall time and boot time move together, by `move_to` alone; sleepers wake in the order of time."""

    def __init__(self, now: datetime) -> None:
        self._now = now
        self._boot = 1000.0
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._order = itertools.count()

    def now(self) -> datetime:
        """Return the instant that the script has reached."""
        return self._now

    def boottime(self) -> float:
        """Return seconds since an arbitrary start."""
        return self._boot

    async def sleep(self, seconds: float) -> None:
        """Return when the script has moved on by so many seconds."""
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._boot + seconds, next(self._order), woken))
        await woken

    def move_to(self, instant: datetime) -> None:
        """Move to an instant; one that is over leaves the time as it is."""
        passed = max(timedelta(), instant - self._now)
        self._now += passed
        self._boot += passed.total_seconds()
        while self._sleepers and self._sleepers[0][0] <= self._boot:
            woken = heapq.heappop(self._sleepers)[2]
            if not woken.done():
                woken.set_result(None)
