"""Removing what broadcasts share with their emails, once those are gone (docs/decisions/0076, DUR-15)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta
from functools import partial
from typing import Final
from uuid import UUID

import asyncpg

from pillarbox.broadcasts import retention_queries as queries
from pillarbox.broadcasts.plans import queries as plan_queries
from pillarbox.broadcasts.retention_queries import EndedBroadcast
from pillarbox.emails.broadcast_copies import shared_content
from pillarbox.kernel.clock import Clock
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.work.collectors import in_batches
from pillarbox.kernel.work.periodic import Periodic

EVERY: Final = timedelta(hours=1)
BATCH: Final = 1000
NONE: Final = UUID(int=0)


class BroadcastRetention:
    """Removes what is left of old broadcasts. `bodies`: after how many days html and text go; 0 is never."""

    def __init__(self, pool: asyncpg.Pool, clock: Clock, *, bodies: int) -> None:
        self._pool = pool
        self._clock = clock
        self._bodies = bodies

    def periodic(self) -> list[Periodic]:
        return [Periodic("broadcasts.retention", EVERY, self.collect)]

    async def collect(self) -> str:
        """Remove recipients and bodies of broadcasts that are over their time; return how many, in words."""
        recipients = bodies = 0
        async for ended in _each(partial(queries.next_purged, self._pool)):
            recipients += await self._remove(ended)
        if self._bodies:
            before = self._clock.now() - timedelta(days=self._bodies)
            async for ended in _each(partial(queries.next_old, self._pool, before=before)):
                assert ended.content_id is not None, "it was joined"
                db = TeamDb(self._pool, ended.team_id)
                for content_id in await plan_queries.contents_of_variants(db, ended.id):
                    await shared_content.empty(db, content_id)
                bodies += await shared_content.empty(db, ended.content_id)
        return f"{recipients} recipients of broadcasts, {bodies} bodies"

    async def _remove(self, ended: EndedBroadcast) -> int:
        """Remove its recipients without emails, and its content once none is left; return how many."""
        db = TeamDb(self._pool, ended.team_id)
        removed, reached = 0, NONE

        async def some() -> int:
            nonlocal removed, reached
            done = await queries.remove_recipients(db, ended.id, reached, BATCH)
            if done is None:
                return 0
            removed += done.removed
            reached = done.contact_id
            return BATCH

        await in_batches(some)
        if not await queries.has_recipients(db, ended.id) and ended.content_id is not None:
            for content_id in await plan_queries.contents_of_variants(db, ended.id):
                await shared_content.remove(db, content_id)
            await shared_content.remove(db, ended.content_id)
        return removed


async def _each(
    next_behind: Callable[[tuple[UUID, UUID]], Awaitable[EndedBroadcast | None]],
) -> AsyncIterator[EndedBroadcast]:
    """Yield the broadcasts of a question, one after the other."""
    at = (NONE, NONE)
    while (ended := await next_behind(at)) is not None:
        at = ended.team_id, ended.id
        yield ended
