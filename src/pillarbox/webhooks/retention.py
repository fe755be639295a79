"""How long the log of webhooks is kept, and the removal of what deleted ones had (DUR-15).

The rows of a webhook lie together in each table, in the order of events. Webhooks are gone through one by
one and a few rows at a time; of one that is gone, everything goes.

What is open is not the log's: a delivery stays until it is decided, however short the log is kept. With it
stay its attempts and the body that it still sends, and, because removal goes by the order of events, what is
younger than it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from uuid import UUID

import asyncpg

from pillarbox.kernel.clock import Clock
from pillarbox.kernel.ids import first_id
from pillarbox.kernel.work.collectors import in_batches
from pillarbox.kernel.work.jobs import Handler, Job, JobFinished
from pillarbox.kernel.work.periodic import Periodic
from pillarbox.webhooks import retention_queries as queries
from pillarbox.webhooks.queries import JOB_REMOVE

BATCH = 500
NONE = UUID(int=0)
ALL = UUID(int=2**128 - 1)


class WebhookRetention:
    """Removes what is older than `days` and decided; 0 keeps it."""

    def __init__(self, pool: asyncpg.Pool, clock: Clock, *, days: int) -> None:
        self._pool = pool
        self._clock = clock
        self._days = days

    def periodic(self) -> list[Periodic]:
        async def settings() -> object:
            return self._days

        return [Periodic("webhooks.retention", timedelta(hours=1), self.collect, depends=settings)]

    def handlers(self) -> dict[str, Handler]:
        return {JOB_REMOVE: self.remove}

    async def remove(self, job: Job) -> JobFinished:
        """Remove all that a deleted webhook had."""
        for table in queries.TABLES:
            await self._remove(table.remove, job.team_id, job.subject_id, ALL)
        return JobFinished()

    async def collect(self) -> str:
        """Remove what is old, and what belongs to no webhook; says how much that was."""
        since = self._clock.now() - timedelta(days=self._days)
        oldest = first_id(since) if self._days else NONE
        rows = events = 0
        for table in queries.TABLES:
            async for team_id, webhook_id, exists in self._webhooks(table.next_webhook):
                before = await self._decided(oldest, team_id, webhook_id) if exists else ALL
                if exists:
                    await queries.move_since(self._pool, team_id, webhook_id, since, before)
                rows += await self._remove(table.remove, team_id, webhook_id, before)
        async for team_id in self._teams():
            events += await self._remove_events(team_id, await self._decided(oldest, team_id))
        return f"{rows} rows of the log, {events} events"

    async def _decided(self, oldest: UUID, team_id: UUID, webhook_id: UUID | None = None) -> UUID:
        """Return the event before which everything is decided and older than is kept."""
        first_open = await queries.first_open(self._pool, team_id, webhook_id)
        return oldest if first_open is None else min(oldest, first_open)

    async def _webhooks(self, statement: str) -> AsyncIterator[tuple[UUID, UUID, bool]]:
        team_id = webhook_id = NONE
        while (row := await queries.next_webhook(self._pool, statement, team_id, webhook_id)) is not None:
            team_id, webhook_id, _ = row
            yield row

    async def _teams(self) -> AsyncIterator[UUID]:
        team_id = NONE
        while (found := await queries.next_team(self._pool, team_id)) is not None:
            team_id = found
            yield team_id

    async def _remove(self, statement: str, *key: UUID) -> int:
        async def some() -> int:
            return await queries.remove(self._pool, statement, *key, limit=BATCH)

        return await in_batches(some)

    async def _remove_events(self, team_id: UUID, before: UUID) -> int:
        async def some() -> int:
            return await queries.remove_events(self._pool, team_id, before, BATCH)

        return await in_batches(some)
