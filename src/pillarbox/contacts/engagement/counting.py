"""Brings the engagement of contacts up to date with the history of mail (docs/decisions/0181).

The history is read a slice of time after the other, each when it is two minutes old, and a slice and the
end of it are one commit. To read a slice twice changes nothing.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

import asyncpg

from pillarbox.contacts.engagement import queries
from pillarbox.kernel.clock import Clock
from pillarbox.kernel.postgres.database import transaction
from pillarbox.kernel.work.periodic import Periodic

EVERY: Final = timedelta(minutes=1)
LATE: Final = timedelta(minutes=2)
"""So long after its time an event may still be on its way into the history."""

OVERLAP: Final = timedelta(minutes=2)
"""So much is read once more, for what came later than that."""

FIRST: Final = timedelta(days=90)
"""So much of the history is read at first."""

SHORTEST: Final = timedelta(seconds=10)
LONGEST: Final = timedelta(hours=6)
FEW: Final = 2_000
MANY: Final = 20_000
"""Contacts of a slice below which the next one is longer, and above which it is shorter."""

SECONDS_AT_ONCE: Final = 20.0


class EngagementCounting:
    """Reads the history of all teams. Of several processes one reads at a time."""

    def __init__(self, pool: asyncpg.Pool, clock: Clock) -> None:
        self._pool = pool
        self._clock = clock
        self._length = timedelta(minutes=5)

    async def keep_up(self) -> str:
        """Read what is old enough, for some seconds; say of how many contacts that was."""
        await queries.begin(self._pool, self._clock.now() - FIRST)
        ends = self._clock.boottime() + SECONDS_AT_ONCE
        total = 0
        while (contacts := await self._count_slice()) is not None:
            total += contacts
            if self._clock.boottime() >= ends:
                break
        return f"{total} contacts"

    async def _count_slice(self) -> int | None:
        """Read one slice; return of how many contacts, None where there is nothing to read."""
        settled = self._clock.now() - LATE
        async with transaction(self._pool) as conn:
            start = await queries.progress(conn)
            if start is None:
                return None
            if start > settled:
                if start > self._clock.now():
                    # The clock was ahead.
                    await queries.advance(conn, settled)
                return None
            end = min(start + self._length, settled)
            if end - start < SHORTEST:
                return None
            contacts = await queries.count_slice(conn, start - OVERLAP, end)
            await queries.advance(conn, end)
        if contacts < FEW:
            self._length = min(2 * self._length, LONGEST)
        elif contacts > MANY:
            self._length = max(self._length / 2, SHORTEST)
        return contacts


def engagement_periodic(counting: EngagementCounting) -> list[Periodic]:
    """Return the periodic job that keeps up with the history."""
    return [Periodic("contacts.engagement", EVERY, counting.keep_up, quiet=True)]
