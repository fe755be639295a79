"""Periodic job of usage: it removes days that no month needs any more."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Final

import asyncpg

from pillarbox.kernel.clock import Clock
from pillarbox.kernel.work.collectors import changed, in_batches
from pillarbox.kernel.work.periodic import Periodic
from pillarbox.usage import queries

KEPT: Final = timedelta(days=62)
BATCH: Final = 1000


async def remove_old_days(pool: asyncpg.Pool, clock: Clock) -> int:
    """Remove the counts of days that are two months old; returns how many."""
    before = (clock.now() - KEPT).date()

    async def some() -> int:
        return changed(await queries.remove_old_days(pool, before, BATCH))

    return await in_batches(some)


def usage_periodic(pool: asyncpg.Pool, clock: Clock) -> Sequence[Periodic]:
    """Return the periodic job of usage."""

    async def work() -> str:
        return f"{await remove_old_days(pool, clock)} days of usage"

    return [Periodic("usage.forget", timedelta(days=1), work)]
