"""Keeps the terms of contacts up to date, in slices of time, of what was changed in each."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

import asyncpg

from pillarbox.contacts.name_search import queries
from pillarbox.contacts.name_search.terms import terms_of
from pillarbox.kernel.clock import Clock
from pillarbox.kernel.postgres.database import Connection, literal
from pillarbox.kernel.process.offload import in_thread
from pillarbox.kernel.work.periodic import Periodic
from pillarbox.kernel.work.time_slices import SliceBounds, TimeSlices

EVERY: Final = timedelta(seconds=30)
AT_ONCE: Final = 1_000
BOUNDS: Final = SliceBounds(
    late=timedelta(seconds=20),
    # A contact is dated when its transaction begins.
    overlap=timedelta(minutes=2),
    shortest=timedelta(seconds=5),
    longest=timedelta(days=30),
    few=2_000,
    many=20_000,
    pause=None,
    seconds_at_once=25.0,
)


class TermKeeping:
    """Keeps the terms of all teams. To read a slice twice changes nothing."""

    def __init__(self, pool: asyncpg.Pool, clock: Clock) -> None:
        self._pool = pool
        self._clock = clock
        self._slices = TimeSlices(pool, clock, BOUNDS, queries, self._keep_slice)

    async def keep_up(self) -> str:
        """Read what was changed, for some seconds; say of how many contacts."""
        await queries.begin(self._pool, self._clock.now())
        return f"{await self._slices.keep_up()} contacts"

    async def _keep_slice(self, conn: Connection, start: datetime, end: datetime) -> int:
        """Store the terms of what was changed, a block at a time: each is a commit of its own, so that no
        contact stays locked for long."""
        count = 0
        async for block in queries.changed(conn, start, end, AT_ONCE):
            terms = await in_thread(_encoded, block)
            await queries.keep(self._pool, block, terms)
            count += len(block)
        return count


def term_periodic(keeping: TermKeeping) -> list[Periodic]:
    """Return the periodic job that keeps up with changes."""
    return [Periodic("contacts.terms", EVERY, keeping.keep_up, quiet=True)]


def _encoded(contacts: list[queries.ContactTexts]) -> list[str]:
    return [
        literal(terms_of(one.team_id, one.address, one.email, one.first_name, one.last_name))
        for one in contacts
    ]
