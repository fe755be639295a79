"""Removing what broadcasts share with their emails, once those are gone (docs/decisions/0076, DUR-15)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from typing import Final, NamedTuple
from uuid import UUID

import asyncpg

from pillarbox.emails import shared_content
from pillarbox.kernel.clock import Clock
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.work.collectors import in_batches
from pillarbox.kernel.work.periodic import Periodic

EVERY: Final = timedelta(hours=1)
BATCH: Final = 1000
NONE: Final = UUID(int=0)

# Across teams: the next broadcast that is over, of a team whose emails of that time were removed.
NEXT_PURGED: Final = """
    SELECT b.team_id, b.id, b.content_id
      FROM broadcasts b
      JOIN purges p ON p.team_id = b.team_id
     WHERE (b.team_id, b.id) > ($1, $2) AND b.status IN ('sent', 'canceled') AND b.resolved_at < p.before
       AND (EXISTS (SELECT FROM broadcast_recipients r WHERE r.team_id = b.team_id AND r.broadcast_id = b.id)
            OR EXISTS (SELECT FROM contents c WHERE c.team_id = b.team_id AND c.id = b.content_id))
     ORDER BY b.team_id, b.id
     LIMIT 1
"""

# Across teams: the next broadcast with bodies that was over so long ago, none of whose copies is on its way.
NEXT_OLD: Final = """
    SELECT b.team_id, b.id, b.content_id
      FROM broadcasts b
      JOIN contents c ON c.team_id = b.team_id AND c.id = b.content_id
     WHERE (b.team_id, b.id) > ($1, $2) AND b.status IN ('sent', 'canceled')
       AND coalesce(b.sent_at, b.resolved_at) < $3 AND (c.html IS NOT NULL OR c.text IS NOT NULL)
       AND NOT EXISTS (SELECT FROM deliveries d
                         JOIN emails e ON e.team_id = d.team_id AND e.id = d.email_id
                        WHERE d.team_id = b.team_id AND e.broadcast_id = b.id)
     ORDER BY b.team_id, b.id
     LIMIT 1
"""

# Without their emails: those that were skipped, and those whose email was removed.
REMOVE: Final = """
    WITH span AS MATERIALIZED (
        SELECT contact_id, email_id
          FROM broadcast_recipients
         WHERE team_id = $1 AND broadcast_id = $2 AND contact_id > $3
         ORDER BY contact_id
         LIMIT $4
    ), gone AS (
        DELETE FROM broadcast_recipients r
         USING span
         WHERE r.team_id = $1 AND r.broadcast_id = $2 AND r.contact_id = span.contact_id
           AND NOT EXISTS (SELECT FROM emails e WHERE e.team_id = $1 AND e.id = span.email_id)
        RETURNING 1
    )
    SELECT (SELECT count(*) FROM gone) AS removed, contact_id
      FROM span
     ORDER BY contact_id DESC
     LIMIT 1
"""

LEFT: Final = """
    SELECT EXISTS (SELECT FROM broadcast_recipients WHERE team_id = $1 AND broadcast_id = $2)
"""


class _EndedBroadcast(NamedTuple):
    team_id: UUID
    id: UUID
    content_id: UUID | None


class BroadcastRetention:
    """Removes what is left of old broadcasts. `bodies`: after how many days html and text go; 0 is never."""

    def __init__(self, pool: asyncpg.Pool, clock: Clock, *, bodies: int) -> None:
        self._pool = pool
        self._clock = clock
        self._bodies = bodies

    def periodic(self) -> list[Periodic]:
        return [Periodic("broadcasts.retention", EVERY, self.collect)]

    async def collect(self) -> str:
        """Says how much that was."""
        recipients = bodies = 0
        async for ended in self._each(NEXT_PURGED):
            recipients += await self._remove(ended)
        if self._bodies:
            async for ended in self._each(NEXT_OLD, self._clock.now() - timedelta(days=self._bodies)):
                assert ended.content_id is not None, "it was joined"
                bodies += await shared_content.empty(TeamDb(self._pool, ended.team_id), ended.content_id)
        return f"{recipients} recipients of broadcasts, {bodies} bodies"

    async def _each(self, sql: str, *args: datetime) -> AsyncIterator[_EndedBroadcast]:
        at = (NONE, NONE)
        while (row := await self._pool.fetchrow(sql, *at, *args)) is not None:
            ended = _EndedBroadcast(*row)
            at = ended.team_id, ended.id
            yield ended

    async def _remove(self, ended: _EndedBroadcast) -> int:
        """Its recipients without emails, and its content once there are no others."""
        removed, reached = 0, NONE

        async def some() -> int:
            nonlocal removed, reached
            row = await self._pool.fetchrow(REMOVE, ended.team_id, ended.id, reached, BATCH)
            if row is None:
                return 0
            removed += row["removed"]
            reached = row["contact_id"]
            return BATCH

        await in_batches(some)
        is_left = await self._pool.fetchval(LEFT, ended.team_id, ended.id)
        if not is_left and ended.content_id is not None:
            await shared_content.remove(TeamDb(self._pool, ended.team_id), ended.content_id)
        return removed
