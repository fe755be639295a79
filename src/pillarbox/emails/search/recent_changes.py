"""Tells whether something became of a team's newest emails, for pages that show them as they change."""

from __future__ import annotations

from uuid import UUID

import asyncpg

from pillarbox.emails import overview_queries
from pillarbox.kernel.clock import Clock
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.security.remembered import SharedCache


class RecentChanges:
    """Digests of teams' newest emails. However many ask for a team's, a process asks the database for it at
    most four times a second."""

    def __init__(self, pool: asyncpg.Pool, clock: Clock) -> None:
        self._pool = pool
        self._digests: SharedCache[UUID, str] = SharedCache(clock, self._ask)

    async def digest(self, team_id: UUID) -> str:
        """Return a text that is another one after a change of the team's newest hundred emails."""
        return await self._digests.find(team_id) or ""

    async def _ask(self, team_id: UUID) -> str:
        return await overview_queries.digest_of_newest(TeamDb(self._pool, team_id))
