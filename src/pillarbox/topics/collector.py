"""Removing topics that were deleted so long ago that no mail of them can go out any more (DUR-15).

Mail that was accepted before the deletion honours what contacts had chosen, however long it is scheduled
ahead, paused or retried. So a topic stays as long as a broadcast of it is scheduled or being sent. It also
stays while its team has an open delivery that is not younger than the deletion and the last copy of such a
broadcast. What contacts chose goes first, a few rows at a time, then the topic.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import datetime, timedelta
from uuid import UUID

import asyncpg

from pillarbox.kernel.clock import Clock
from pillarbox.kernel.ids import first_id
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.work.collectors import in_batches
from pillarbox.kernel.work.periodic import Periodic
from pillarbox.topics import queries
from pillarbox.topics.queries import DeletedTopicsOwner

EVERY = timedelta(hours=1)
SETTLED_AFTER = timedelta(days=1)
"""A request that found the topic still there has ended by then, on whatever host and by whatever clock."""
BATCH = 1000
TOPICS = 1000
"""Topics that are removed together: the choices of the team are gone through once for them."""
NONE = UUID(int=0)


class TopicCollector:
    """Removes deleted topics with what was chosen of them."""

    def __init__(self, pool: asyncpg.Pool, clock: Clock) -> None:
        self._pool = pool
        self._clock = clock

    def periodic(self) -> list[Periodic]:
        return [Periodic("topics.collect", EVERY, self.collect)]

    async def collect(self) -> str:
        """Remove deleted topics and their choices that no open mail needs; return how many, in words."""
        topics = choices = 0
        before = self._clock.now() - SETTLED_AFTER
        async for team in self._teams(before):
            db = TeamDb(self._pool, team.team_id)
            while over := await _over(db, team.oldest_open, before):
                choices += await _remove_choices(db, over)
                topics += await queries.remove_deleted(db, over)
        return f"{topics} deleted topics, {choices} choices of them"

    async def _teams(self, before: datetime) -> AsyncIterator[DeletedTopicsOwner]:
        team_id = NONE
        while (team := await queries.next_with_deleted(self._pool, team_id, before)) is not None:
            team_id = team.team_id
            yield team


async def _over(db: TeamDb, oldest_open: UUID | None, before: datetime) -> Sequence[UUID]:
    """Return the deleted topics of a team whose mail has all come to its end, those without mail for
    longest first."""
    return [
        topic.id
        for topic in await queries.deleted(db, before, TOPICS)
        if oldest_open is None or oldest_open >= first_id(topic.last_mail_at + SETTLED_AFTER)
    ]


async def _remove_choices(db: TeamDb, topic_ids: Sequence[UUID]) -> int:
    removed = 0
    last = (NONE, NONE)

    async def some() -> int:
        nonlocal removed, last
        choices = await queries.remove_choices(db, topic_ids, last, BATCH)
        if choices is None:
            return 0
        removed += choices.removed
        last = choices.contact_id, choices.topic_id
        return BATCH

    await in_batches(some)
    return removed
