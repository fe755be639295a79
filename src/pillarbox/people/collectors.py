"""Removes what ends by itself: sessions, links, challenges, changes of addresses."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from typing import Final

import asyncpg

from pillarbox.kernel.clock import Clock
from pillarbox.kernel.work.periodic import Periodic
from pillarbox.people import queries, session_queries
from pillarbox.people.addresses import address_queries
from pillarbox.people.openid import openid_queries
from pillarbox.people.sessions import IDLE

EVERY: Final = timedelta(hours=1)
KEPT: Final = timedelta(days=1)
"""For so long after their end links, challenges and changes of addresses stay."""

BATCH: Final = 1000


class PeopleCollector:
    """Removes rows that mean nothing any more, some at a time."""

    def __init__(self, pool: asyncpg.Pool, clock: Clock) -> None:
        self._pool = pool
        self._clock = clock

    def periodic(self) -> Sequence[Periodic]:
        return [Periodic("people.collect", EVERY, self.collect)]

    async def collect(self) -> str:
        """Remove sessions, links and challenges that are over their time; return how many of each, in
        words."""
        now = self._clock.now()
        sessions = await self._removed(session_queries.remove_old, now, now - IDLE)
        links = await self._removed(queries.remove_links, now - KEPT)
        challenges = await self._removed(queries.remove_challenges, now - KEPT)
        changes = await self._removed(address_queries.remove_old, now - KEPT)
        states = await self._removed(openid_queries.remove_states, now - KEPT)
        return (
            f"{sessions} sessions, {links} links, {challenges} challenges, {changes} changes of addresses, "
            f"{states} states of logins"
        )

    async def _removed(self, remove: Callable[..., Awaitable[int]], *instants: datetime) -> int:
        total, last = 0, BATCH
        while last == BATCH:
            last = await remove(self._pool, *instants, BATCH)
            total += last
        return total
