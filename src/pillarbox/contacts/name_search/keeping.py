"""Keeps the terms of contacts up to date: a slice of time after the other, of what was changed in it.

To read a slice twice changes nothing, so a process that dies leaves nothing half done.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

import asyncpg

from pillarbox.contacts.name_search import queries
from pillarbox.contacts.name_search.terms import terms_of
from pillarbox.kernel.clock import Clock
from pillarbox.kernel.postgres.database import literal, transaction
from pillarbox.kernel.process.offload import in_thread
from pillarbox.kernel.work.periodic import Periodic

EVERY: Final = timedelta(seconds=30)
LATE: Final = timedelta(seconds=20)
OVERLAP: Final = timedelta(minutes=2)
"""So much is read once more: a contact is dated when its transaction begins."""

SHORTEST: Final = timedelta(seconds=5)
LONGEST: Final = timedelta(days=30)
FEW: Final = 2_000
MANY: Final = 20_000
"""Contacts of a slice below which the next one is longer, and above which it is shorter."""

AT_ONCE: Final = 1_000
SECONDS_AT_ONCE: Final = 25.0


class TermKeeping:
    """Keeps the terms of all teams. Of several processes one does at a time."""

    def __init__(self, pool: asyncpg.Pool, clock: Clock) -> None:
        self._pool = pool
        self._clock = clock
        self._length = timedelta(minutes=5)

    async def keep_up(self) -> str:
        """Read what was changed, for some seconds; say how many contacts have other terms now."""
        await queries.begin(self._pool, self._clock.now())
        ends = self._clock.boottime() + SECONDS_AT_ONCE
        total = 0
        while (contacts := await self._keep_slice()) is not None:
            total += contacts
            if self._clock.boottime() >= ends:
                break
        return f"{total} contacts"

    async def _keep_slice(self) -> int | None:
        """Read one slice; return of how many contacts the terms changed, None where there is nothing to
        read."""
        settled = self._clock.now() - LATE
        seen = kept = 0
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
            async for block in queries.changed(conn, start - OVERLAP, end, AT_ONCE):
                terms = await in_thread(_encoded, block)
                kept += await queries.keep(self._pool, block, terms)
                seen += len(block)
            await queries.advance(conn, end)
        if seen < FEW:
            self._length = min(4 * self._length, LONGEST)
        elif seen > MANY:
            self._length = max(self._length / 2, SHORTEST)
        return kept


def term_periodic(keeping: TermKeeping) -> list[Periodic]:
    """Return the periodic job that keeps up with changes."""
    return [Periodic("contacts.terms", EVERY, keeping.keep_up, quiet=True)]


def _encoded(contacts: list[queries.ContactTexts]) -> list[str]:
    return [
        literal(terms_of(one.team_id, one.address, one.email, one.first_name, one.last_name))
        for one in contacts
    ]
