"""Removing what the kernel's own tables no longer need, a few rows at a time (DUR-15)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta

import asyncpg

from pillarbox.kernel.clock import Clock
from pillarbox.kernel.http.idempotency import LIFETIME
from pillarbox.kernel.postgres.database import Source
from pillarbox.kernel.security import rate_queries
from pillarbox.kernel.work import collector_queries
from pillarbox.kernel.work.periodic import Periodic

BATCH = 1000
DEAD_AFTER = timedelta(days=1)
"""A process that was last seen so long ago holds no lease any more."""


async def expired_keys(source: Source, now: datetime) -> int:
    """Remove answers older than 24 hours; returns how many."""

    async def some() -> int:
        return changed(await collector_queries.remove_expired_keys(source, now - LIFETIME, BATCH))

    return await in_batches(some)


async def misdated_keys(source: Source, now: datetime) -> int:
    """Set answers from the future to `now`; return how many."""
    return changed(await collector_queries.date_keys(source, now))


async def dead_processes(source: Source, now: datetime) -> int:
    """Remove processes that were last seen before `DEAD_AFTER`; returns how many."""
    return changed(await collector_queries.remove_processes(source, now - DEAD_AFTER))


async def in_batches(some: Callable[[], Awaitable[int]]) -> int:
    """Do `some` until it finds nothing more; returns the sum. Rests as long as each turn took, so that the
    database is at most half busy with it."""
    total = 0
    while True:
        started = time.monotonic()
        done = await some()
        if not done:
            return total
        total += done
        await asyncio.sleep(time.monotonic() - started)


def changed(status: str) -> int:
    """Return how many rows a statement changed."""
    return int(status.rsplit(" ", 1)[-1])


def own_periodic(pool: asyncpg.Pool, clock: Clock) -> list[Periodic]:
    """Return the periodic jobs for the kernel's tables."""

    async def collect() -> str:
        keys = await expired_keys(pool, clock.now())
        processes = await dead_processes(pool, clock.now())
        await rate_queries.remove_old(pool)
        return f"{keys} idempotency keys, {processes} processes"

    return [Periodic("kernel.collect", timedelta(hours=1), collect)]
