"""The end of log rows (DUR-15). A team's rows lie in the order of their ids, so what is old is at one end."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Final
from uuid import UUID

import asyncpg

from pillarbox.kernel.clock import Clock
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.work.collectors import in_batches
from pillarbox.kernel.work.periodic import Periodic
from pillarbox.logs import queries
from pillarbox.logs.policy import LogPolicy

BATCH: Final = 1000


async def purge(pool: asyncpg.Pool, clock: Clock, policy: LogPolicy) -> int:
    """Remove the rows that are over their team's time; returns how many."""
    removed = 0
    now = clock.now()
    for team_id, days in await queries.retentions(pool):
        removed += await _remove(TeamDb(pool, team_id), policy.oldest(policy.for_team(days), now))
    return removed


async def _remove(db: TeamDb, before: UUID) -> int:
    async def some() -> int:
        return await queries.remove(db, before, BATCH)

    return await in_batches(some)


def log_periodic(pool: asyncpg.Pool, clock: Clock, policy: LogPolicy) -> Sequence[Periodic]:
    """Return the periodic job of the log."""

    async def work() -> str:
        return f"{await purge(pool, clock, policy)} log rows"

    async def settings() -> object:
        own = {team_id: days for team_id, days in await queries.retentions(pool) if days is not None}
        return policy.for_team(None), own

    return [Periodic("logs.retention", timedelta(hours=1), work, depends=settings)]
