"""Removing events that could not be distributed, after a while (DUR-15)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Final

import asyncpg

from pillarbox.events import queries
from pillarbox.kernel.clock import Clock
from pillarbox.kernel.work.collectors import in_batches
from pillarbox.kernel.work.periodic import Periodic

FAILED_KEPT: Final = timedelta(days=30)
EVERY: Final = timedelta(hours=1)
BATCH: Final = 1000


@dataclass(frozen=True, slots=True)
class EventRetention:
    """Removes what is old."""

    pool: asyncpg.Pool
    clock: Clock

    def periodic(self) -> list[Periodic]:
        return [Periodic("events.retention", EVERY, self.collect)]

    async def collect(self) -> str:
        """Remove failed events that are over their time; return how many, in words."""
        before = self.clock.now() - FAILED_KEPT

        async def some() -> int:
            return await queries.remove_failed(self.pool, before, BATCH)

        return f"{await in_batches(some)} events"
