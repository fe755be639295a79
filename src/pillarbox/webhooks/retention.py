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
from typing import NamedTuple
from uuid import UUID

import asyncpg

from pillarbox.kernel.clock import Clock
from pillarbox.kernel.ids import first_id
from pillarbox.kernel.work.collectors import changed, in_batches
from pillarbox.kernel.work.jobs import Handler, Job, JobFinished
from pillarbox.kernel.work.periodic import Periodic
from pillarbox.webhooks.queries import JOB_REMOVE

BATCH = 500
NONE = UUID(int=0)
ALL = UUID(int=2**128 - 1)

# Across teams: the next webhook that has rows in a table, and whether it is still there.
WITH_DELIVERIES = """
    SELECT d.team_id, d.webhook_id,
           EXISTS (SELECT FROM webhooks w WHERE w.team_id = d.team_id AND w.id = d.webhook_id)
      FROM webhook_deliveries d
     WHERE (d.team_id, d.webhook_id) > ($1, $2)
     ORDER BY d.team_id, d.webhook_id
     LIMIT 1
"""

WITH_OUTCOMES = """
    SELECT o.team_id, o.webhook_id,
           EXISTS (SELECT FROM webhooks w WHERE w.team_id = o.team_id AND w.id = o.webhook_id)
      FROM webhook_outcomes o
     WHERE (o.team_id, o.webhook_id) > ($1, $2)
     ORDER BY o.team_id, o.webhook_id
     LIMIT 1
"""

WITH_ATTEMPTS = """
    SELECT a.team_id, a.webhook_id,
           EXISTS (SELECT FROM webhooks w WHERE w.team_id = a.team_id AND w.id = a.webhook_id)
      FROM webhook_attempts a
     WHERE (a.team_id, a.webhook_id) > ($1, $2)
     ORDER BY a.team_id, a.webhook_id
     LIMIT 1
"""

WITH_EVENTS = """
    SELECT team_id FROM webhook_events WHERE team_id > $1 ORDER BY team_id LIMIT 1
"""

# The first event of a team, or of one of its webhooks, that is not decided.
FIRST_OPEN = """
    SELECT first.event_id
      FROM webhooks w
     CROSS JOIN LATERAL (
           SELECT d.event_id
             FROM webhook_deliveries d
            WHERE d.team_id = $1 AND d.webhook_id = w.id AND d.epoch = w.epoch
            ORDER BY d.event_id
            LIMIT 1) AS first
     WHERE w.team_id = $1 AND ($2::uuid IS NULL OR w.id = $2)
     ORDER BY first.event_id
     LIMIT 1
"""

# Said before outcomes go: of the time before, nobody expects rows any more.
MOVE_SINCE = """
    UPDATE webhooks
       SET since = $3
     WHERE team_id = $1 AND id = $2 AND since < $3
       AND EXISTS (SELECT FROM webhook_outcomes o
                    WHERE o.team_id = $1 AND o.webhook_id = $2 AND o.event_id < $4)
"""

# Only what is void: of an earlier epoch, or of a webhook that is gone.
REMOVE_DELIVERIES = """
    WITH old AS MATERIALIZED (
        SELECT event_id, replay
          FROM webhook_deliveries d
         WHERE team_id = $1 AND webhook_id = $2 AND event_id < $3
           AND NOT EXISTS (SELECT FROM webhooks w
                            WHERE w.team_id = $1 AND w.id = $2 AND w.epoch = d.epoch)
         ORDER BY event_id
         LIMIT $4
           FOR UPDATE OF d SKIP LOCKED
    )
    DELETE FROM webhook_deliveries d
     USING old
     WHERE d.team_id = $1 AND d.webhook_id = $2 AND d.event_id = old.event_id AND d.replay = old.replay
"""

REMOVE_OUTCOMES = """
    WITH old AS MATERIALIZED (
        SELECT event_id
          FROM webhook_outcomes
         WHERE team_id = $1 AND webhook_id = $2 AND event_id < $3
         ORDER BY event_id
         LIMIT $4
    )
    DELETE FROM webhook_outcomes o USING old
     WHERE o.team_id = $1 AND o.webhook_id = $2 AND o.event_id = old.event_id
"""

REMOVE_ATTEMPTS = """
    WITH old AS MATERIALIZED (
        SELECT event_id, id
          FROM webhook_attempts
         WHERE team_id = $1 AND webhook_id = $2 AND event_id < $3
         ORDER BY event_id, id
         LIMIT $4
    )
    DELETE FROM webhook_attempts a USING old
     WHERE a.team_id = $1 AND a.webhook_id = $2 AND a.event_id = old.event_id AND a.id = old.id
"""

REMOVE_EVENTS = """
    WITH old AS MATERIALIZED (
        SELECT id FROM webhook_events WHERE team_id = $1 AND id < $2 ORDER BY id LIMIT $3
    )
    DELETE FROM webhook_events e USING old WHERE e.team_id = $1 AND e.id = old.id
"""


class LogTable(NamedTuple):
    """A table of the log: how to find the next webhook that has rows in it, and how to remove old ones."""

    next_webhook: str
    remove: str


TABLES = (
    LogTable(WITH_DELIVERIES, REMOVE_DELIVERIES),
    LogTable(WITH_OUTCOMES, REMOVE_OUTCOMES),
    LogTable(WITH_ATTEMPTS, REMOVE_ATTEMPTS),
)


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
        for table in TABLES:
            await self._remove(table.remove, job.team_id, job.subject_id, ALL)
        return JobFinished()

    async def collect(self) -> str:
        """Remove what is old, and what belongs to no webhook; says how much that was."""
        since = self._clock.now() - timedelta(days=self._days)
        oldest = first_id(since) if self._days else NONE
        rows = events = 0
        for table in TABLES:
            async for team_id, webhook_id, exists in self._webhooks(table.next_webhook):
                before = await self._decided(oldest, team_id, webhook_id) if exists else ALL
                if exists:
                    await self._pool.execute(MOVE_SINCE, team_id, webhook_id, since, before)
                rows += await self._remove(table.remove, team_id, webhook_id, before)
        async for team_id in self._teams():
            events += await self._remove(REMOVE_EVENTS, team_id, await self._decided(oldest, team_id))
        return f"{rows} rows of the log, {events} events"

    async def _decided(self, oldest: UUID, team_id: UUID, webhook_id: UUID | None = None) -> UUID:
        """Before this event everything is decided and older than is kept."""
        first_open = await self._pool.fetchval(FIRST_OPEN, team_id, webhook_id)
        return oldest if first_open is None else min(oldest, first_open)

    async def _webhooks(self, statement: str) -> AsyncIterator[tuple[UUID, UUID, bool]]:
        team_id = webhook_id = NONE
        while (row := await self._pool.fetchrow(statement, team_id, webhook_id)) is not None:
            team_id, webhook_id, exists = row
            yield team_id, webhook_id, exists

    async def _teams(self) -> AsyncIterator[UUID]:
        team_id = NONE
        while (found := await self._pool.fetchval(WITH_EVENTS, team_id)) is not None:
            team_id = found
            yield team_id

    async def _remove(self, statement: str, *key: UUID) -> int:
        async def some() -> int:
            return changed(await self._pool.execute(statement, *key, BATCH))

        return await in_batches(some)
