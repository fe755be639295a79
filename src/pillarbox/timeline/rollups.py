"""Folding increments into rollups, and thinning the finest of them out (architecture 2.11).

`record` appends increments: small rows, one for each ten seconds, domain and broadcast of a batch. Folding
takes them away and adds them to the rollups of ten seconds, of the quarter hour, the hour and the UTC day, in
one statement; so whoever reads increments and rollups in one snapshot counts each event once, at any moment.

Rollups of ten seconds answer ranges that begin or end inside a quarter hour. They are there for every quarter
hour younger than `FINE_FOR`, and afterwards only where the quarter hour has so many events that reading its
timeline would be slow. A quarter hour has all of them or none.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from uuid import UUID

import asyncpg

from pillarbox.kernel.clock import Clock
from pillarbox.kernel.ids import first_id
from pillarbox.kernel.postgres.database import Connection, transaction
from pillarbox.kernel.work.collectors import in_batches
from pillarbox.kernel.work.periodic import Periodic
from pillarbox.timeline import rollup_queries as queries

BATCH = 10_000
FOLD_EVERY = timedelta(seconds=15)
THIN_EVERY = timedelta(hours=1)

LONGEST_MONTH = 31
"""Days that are kept whatever retention says: quotas count what was sent this month."""

FINE_FOR = timedelta(hours=48)
LOOK_BACK = timedelta(days=9)
"""How far behind `FINE_FOR` each run of thinning reads."""
BUSY = 20_000
"""Events that make a quarter hour busy …"""
BUSY_PER_ROW = 20
"""… when they are also so many for each of its ten-second rollups."""


async def fold(pool: asyncpg.Pool, now: datetime) -> int:
    """Add every increment to the rollups; returns how many there were."""
    total = 0
    for team_id in await queries.teams_with_increments(pool):
        while True:
            async with transaction(pool) as conn:
                await queries.lock(conn)
                taken = await fold_some(conn, team_id, now)
            total += taken
            if taken < BATCH:
                break
    return total


async def fold_some(conn: Connection, team_id: UUID, now: datetime) -> int:
    """Add the oldest increments of a team to the rollups; the caller holds the lock."""
    return await queries.fold(conn, team_id, BATCH, _horizon(now))


async def thin(pool: asyncpg.Pool, now: datetime, busy: int = BUSY) -> int:
    """Remove the ten-second rollups of quarter hours with fewer than `busy` events; returns how many."""
    horizon = _horizon(now)

    async def some() -> int:
        async with transaction(pool) as conn:
            await queries.lock(conn)
            return await queries.remove_quiet(
                conn, horizon - LOOK_BACK, horizon, busy, min(busy, BUSY_PER_ROW), 200
            )

    return await in_batches(some)


async def forget(pool: asyncpg.Pool, team_id: UUID, before: datetime) -> int:
    """Remove a team's rollups of days before `before`, but for those of broadcasts; returns how many."""

    async def some() -> int:
        async with transaction(pool) as conn:
            await queries.lock(conn)
            return await queries.remove_old(conn, team_id, before, BATCH)

    await queries.mark_removal(pool, team_id, before, first_id(before))
    return await in_batches(some)


async def remove_old(pool: asyncpg.Pool, now: datetime, retention_days: int) -> int:
    """Remove the rollups that are over their team's time; returns how many."""
    forgotten = 0
    for team_id, days in await queries.retentions(pool):
        before = kept_since(now, retention_days if days is None else days)
        if before is not None:
            forgotten += await forget(pool, team_id, before)
    return forgotten


def kept_since(now: datetime, retention_days: int) -> datetime | None:
    """Return the instant from which on rollups are kept for sure; None where they are kept for ever."""
    return oldest_day(now, max(retention_days, LONGEST_MONTH)) if retention_days else None


def _horizon(now: datetime) -> datetime:
    """Return the quarter hour from which on ten-second rollups are kept of all."""
    oldest = now - FINE_FOR
    return oldest.replace(minute=oldest.minute - oldest.minute % 15, second=0, microsecond=0)


def fold_periodic(pool: asyncpg.Pool, clock: Clock) -> Sequence[Periodic]:
    """Return the periodic job that folds increments."""

    async def folding() -> str:
        return f"{await fold(pool, clock.now())} increments folded"

    return [Periodic("metrics.fold", FOLD_EVERY, folding, quiet=True)]


def thin_periodic(pool: asyncpg.Pool, clock: Clock, retention_days: int) -> Sequence[Periodic]:
    """Return the periodic job that removes rollups."""

    async def thinning() -> str:
        now = clock.now()
        thinned = await thin(pool, now)
        forgotten = await remove_old(pool, now, retention_days)
        return f"{thinned} fine rollups thinned out, {forgotten} rollups forgotten"

    async def settings() -> object:
        retentions = await queries.retentions(pool)
        return retention_days, {team_id: days for team_id, days in retentions if days is not None}

    return [Periodic("metrics.thin", THIN_EVERY, thinning, depends=settings)]


def oldest_day(now: datetime, retention_days: int) -> datetime:
    """Return the start of the oldest UTC day that is kept."""
    return now.replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=retention_days)
