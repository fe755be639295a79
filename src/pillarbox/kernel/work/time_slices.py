"""Background reading of what happened, a slice of time after the other (docs/decisions/0181).

A slice is read once it is old enough for all of it to be committed, and what is made of it and its end are
one commit. So a process that dies loses nothing, and reads nothing twice. After a pause, as when the database
was away, a reader waits: outcomes of before the pause, dated by it, may be committed only now.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import NamedTuple, Protocol

import asyncpg

from pillarbox.kernel.clock import Clock
from pillarbox.kernel.postgres.database import Connection, transaction

ReadSlice = Callable[[Connection, datetime, datetime], Awaitable[int]]
"""Reads what happened from one instant to another, on this connection; returns how many things those were."""


class SliceProgress(Protocol):
    """Statements about how far is read; a queries module has them."""

    async def progress(self, conn: Connection, /) -> datetime | None:
        """Return how far is read, and keep others from reading on; None where another process reads."""

    async def advance(self, conn: Connection, until: datetime, /) -> None:
        """Note how far is read."""


class SliceBounds(NamedTuple):
    """When slices are read, and how long they are.

    `late`: so long after its time something may still be on its way. `overlap`: so much is read once more,
    where reading twice changes nothing. `few`, `many`: with fewer things the next slice is longer, with more
    it is shorter. `pause`: a reader that is further behind waits for `late` before it reads on; None where
    nothing is committed long after its time.
    """

    late: timedelta
    shortest: timedelta
    longest: timedelta
    few: int
    many: int
    overlap: timedelta = timedelta(0)
    pause: timedelta | None = timedelta(minutes=3)
    seconds_at_once: float = 20.0


class TimeSlices:
    """Reads on from where it was, for some seconds at a time. Of several processes one reads."""

    def __init__(
        self,
        pool: asyncpg.Pool,
        clock: Clock,
        bounds: SliceBounds,
        progress: SliceProgress,
        read: ReadSlice,
    ) -> None:
        self._pool = pool
        self._clock = clock
        self._bounds = bounds
        self._progress = progress
        self._read = read
        self._length = timedelta(minutes=5)
        self._behind_since: float | None = None

    async def keep_up(self) -> int:
        """Read what is old enough, for some seconds; return how many things that were."""
        ends = self._clock.boottime() + self._bounds.seconds_at_once
        total = 0
        while (count := await self._read_slice()) is not None:
            total += count
            if self._clock.boottime() >= ends:
                break
        return total

    async def _read_slice(self) -> int | None:
        """Read one slice; return how many things it has, None where there is nothing to read."""
        bounds = self._bounds
        settled = self._clock.now() - bounds.late
        async with transaction(self._pool) as conn:
            start = await self._progress.progress(conn)
            if start is None:
                return None
            if start > self._clock.now():
                # The clock was ahead: what is dated by it may be read twice.
                await self._progress.advance(conn, settled)
                return None
            if self._waits(behind=settled - start):
                return None
            end = min(start + self._length, settled)
            if end - start < bounds.shortest:
                return None
            count = await self._read(conn, start - bounds.overlap, end)
            await self._progress.advance(conn, end)
        if count < bounds.few:
            self._length = min(2 * self._length, bounds.longest)
        elif count > bounds.many:
            self._length = max(self._length / 2, bounds.shortest)
        return count

    def _waits(self, *, behind: timedelta) -> bool:
        """Return whether what happened before a pause may still be on its way."""
        if self._bounds.pause is None or behind <= self._bounds.pause:
            self._behind_since = None
            return False
        now = self._clock.boottime()
        if self._behind_since is None:
            self._behind_since = now
        return now - self._behind_since < self._bounds.late.total_seconds()
