"""Brings the engagement of contacts up to date with the history of mail (docs/decisions/0181)."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

import asyncpg

from pillarbox.contacts.engagement import queries
from pillarbox.kernel.clock import Clock
from pillarbox.kernel.work.periodic import Periodic
from pillarbox.kernel.work.time_slices import SliceBounds, TimeSlices

EVERY: Final = timedelta(minutes=1)
FIRST: Final = timedelta(days=90)
"""So much of the history is read at first."""

BOUNDS: Final = SliceBounds(
    late=timedelta(minutes=2),
    overlap=timedelta(minutes=2),
    shortest=timedelta(seconds=10),
    longest=timedelta(hours=6),
    few=2_000,
    many=20_000,
)


class EngagementCounting:
    """Reads the history of all teams, in slices of time. To read one twice changes nothing."""

    def __init__(self, pool: asyncpg.Pool, clock: Clock) -> None:
        self._pool = pool
        self._clock = clock
        self._slices = TimeSlices(pool, clock, BOUNDS, queries, queries.count_slice)

    async def keep_up(self) -> str:
        """Read what is old enough, for some seconds; say of how many contacts that was."""
        await queries.begin(self._pool, self._clock.now() - FIRST)
        return f"{await self._slices.keep_up()} contacts"


def engagement_periodic(counting: EngagementCounting) -> list[Periodic]:
    """Return the periodic job that keeps up with the history."""
    return [Periodic("contacts.engagement", EVERY, counting.keep_up, quiet=True)]
