"""Removing topics that were deleted so long ago that no mail of them can go out any more (DUR-15).

Mail that was accepted before the deletion honours what contacts had chosen, however long it is scheduled
ahead, paused or retried. So a topic stays as long as a broadcast of it is scheduled or being sent. It also
stays while its team has an open delivery that is not younger than the deletion and the last copy of such a
broadcast. What contacts chose goes first, a few rows at a time, then the topic.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple
from uuid import UUID

import asyncpg

from pillarbox.kernel.clock import Clock
from pillarbox.kernel.ids import first_id
from pillarbox.kernel.work.collectors import changed, in_batches
from pillarbox.kernel.work.periodic import Periodic

EVERY = timedelta(hours=1)
SETTLED_AFTER = timedelta(days=1)
"""A request that found the topic still there has ended by then, on whatever host and by whatever clock."""
BATCH = 1000
TOPICS = 1000
"""Topics that are removed together: the choices of the team are gone through once for them."""
NONE = UUID(int=0)

# Across teams: the next team that has deleted topics, with its oldest open delivery.
NEXT_TEAM: Final = """
    SELECT t.team_id,
           (SELECT d.email_id FROM deliveries d WHERE d.team_id = t.team_id ORDER BY d.email_id LIMIT 1)
      FROM topics t
     WHERE t.team_id > $1 AND t.deleted_at < $2
     ORDER BY t.team_id
     LIMIT 1
"""

# Copies of a broadcast that had the topic are made until it is sent: that is when the last of its mail
# begins.
DELETED: Final = """
    SELECT t.id, greatest(t.deleted_at, b.sent_at) AS last_mail_at
      FROM topics t
      LEFT JOIN (SELECT topic_id, max(sent_at) AS sent_at,
                        bool_or(status IN ('scheduled', 'queued')) AS is_open
                   FROM broadcasts
                  WHERE team_id = $1 AND topic_id IS NOT NULL
                  GROUP BY topic_id) AS b ON b.topic_id = t.id
     WHERE t.team_id = $1 AND t.deleted_at < $2 AND b.is_open IS NOT TRUE
     ORDER BY last_mail_at
     LIMIT $3
"""

# The choices of a team are gone through in the order of their key, which does not begin with the topic.
REMOVE_CHOICES: Final = """
    WITH span AS MATERIALIZED (
        SELECT contact_id, topic_id
          FROM topic_choices
         WHERE team_id = $1 AND (contact_id, topic_id) > ($3, $4)
         ORDER BY contact_id, topic_id
         LIMIT $5
    ), gone AS (
        DELETE FROM topic_choices c
         USING span
         WHERE c.team_id = $1 AND c.contact_id = span.contact_id AND c.topic_id = span.topic_id
           AND span.topic_id = ANY ($2::uuid[])
        RETURNING 1
    )
    SELECT (SELECT count(*) FROM gone) AS removed, contact_id, topic_id
      FROM span
     ORDER BY contact_id DESC, topic_id DESC
     LIMIT 1
"""

REMOVE_TOPICS: Final = """
    DELETE FROM topics WHERE team_id = $1 AND id = ANY ($2::uuid[]) AND deleted_at IS NOT NULL
"""


class _Team(NamedTuple):
    id: UUID
    oldest_open: UUID | None
    """The email of its oldest open delivery."""


class TopicCollector:
    """Removes deleted topics with what was chosen of them."""

    def __init__(self, pool: asyncpg.Pool, clock: Clock) -> None:
        self._pool = pool
        self._clock = clock

    def periodic(self) -> list[Periodic]:
        return [Periodic("topics.collect", EVERY, self.collect)]

    async def collect(self) -> str:
        """Says how much that was."""
        topics = choices = 0
        before = self._clock.now() - SETTLED_AFTER
        async for team in self._teams(before):
            while over := await self._over(team, before):
                choices += await self._remove_choices(team.id, over)
                topics += changed(await self._pool.execute(REMOVE_TOPICS, team.id, over))
        return f"{topics} deleted topics, {choices} choices of them"

    async def _teams(self, before: datetime) -> AsyncIterator[_Team]:
        team_id = NONE
        while (row := await self._pool.fetchrow(NEXT_TEAM, team_id, before)) is not None:
            team = _Team(*row)
            team_id = team.id
            yield team

    async def _over(self, team: _Team, before: datetime) -> Sequence[UUID]:
        """Deleted topics of a team whose mail has all come to its end, those without mail for longest
        first."""
        rows = await self._pool.fetch(DELETED, team.id, before, TOPICS)
        return [
            row["id"]
            for row in rows
            if team.oldest_open is None or team.oldest_open >= first_id(row["last_mail_at"] + SETTLED_AFTER)
        ]

    async def _remove_choices(self, team_id: UUID, topics: Sequence[UUID]) -> int:
        removed = 0
        at = (NONE, NONE)

        async def some() -> int:
            nonlocal removed, at
            row = await self._pool.fetchrow(REMOVE_CHOICES, team_id, topics, *at, BATCH)
            if row is None:
                return 0
            removed += row["removed"]
            at = row["contact_id"], row["topic_id"]
            return BATCH

        await in_batches(some)
        return removed
