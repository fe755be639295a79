"""Removing runs that ended long ago, and versions that no run walks any more (DUR-15)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Final
from uuid import UUID

import asyncpg

from pillarbox.automations import retention_queries
from pillarbox.automations.mail_events import unsubscribe_unneeded
from pillarbox.kernel.clock import Clock
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.work.collectors import in_batches
from pillarbox.kernel.work.periodic import Periodic
from pillarbox.webhooks.listening.subscriptions import EventSubscription

RUNS_KEPT: Final = timedelta(days=90)
EVERY: Final = timedelta(hours=6)
BATCH: Final = 1000
NONE: Final = UUID(int=0)


@dataclass(frozen=True, slots=True)
class RunRetention:
    """Removes what is old."""

    pool: asyncpg.Pool
    clock: Clock
    subscription: EventSubscription

    def periodic(self) -> list[Periodic]:
        return [Periodic("automations.retention", EVERY, self.collect)]

    async def collect(self) -> str:
        """Remove runs and versions that are over their time; return how many, in words."""
        before, runs, versions = self.clock.now() - RUNS_KEPT, 0, 0
        async for db in self._teams():

            async def some(db: TeamDb = db) -> int:
                return await retention_queries.remove_runs(db, before, BATCH)

            runs += await in_batches(some)
            versions += await retention_queries.remove_versions(db)
        ended = await unsubscribe_unneeded(self.pool, self.subscription, self.clock.now())
        return f"{runs} runs, {versions} versions, {ended} subscriptions"

    async def _teams(self) -> AsyncIterator[TeamDb]:
        """Yield every team with automations."""
        after = NONE
        while (team_id := await retention_queries.next_team(self.pool, after)) is not None:
            yield TeamDb(self.pool, team_id)
            after = team_id
