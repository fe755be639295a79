"""Which destinations mail has waited for longest, for Prometheus (docs/decisions/0014).

Counted is what ought to have left by now: it was tried, or is due, or the smarthost refuses it. What is
scheduled for later, or waits for an attachment, or was put aside, is not. The names of destinations become
labels, so they are few: the ten that have waited longest, and only after five minutes, when the first retries
have failed. All others are one.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

import asyncpg

from pillarbox.delivery import prometheus
from pillarbox.delivery.items import QUARANTINED, UNTIL_FETCHED
from pillarbox.delivery.queue import destination_queries
from pillarbox.delivery.queue.queue_metrics import COUNTING
from pillarbox.delivery.smtp.relay_faults import PREFIX
from pillarbox.kernel.clock import Clock
from pillarbox.kernel.observability.log import get
from pillarbox.kernel.observability.loop_failures import LoopFailures
from pillarbox.kernel.observability.metrics import Labels
from pillarbox.kernel.work.queue_counts import EVERY

log = get("metrics")

SHOWN: Final = 10
LONG: Final = timedelta(minutes=5)
OTHERS: Final = "(others)"


class DestinationCounts:
    """The newest counts, by destination: items, and seconds since the oldest of them ought to have left."""

    def __init__(self, pool: asyncpg.Pool, clock: Clock, *, limit: int = COUNTING.most) -> None:
        self._pool = pool
        self._clock = clock
        self._most = limit
        self.items: dict[Labels, float] = {}
        self.oldest: dict[Labels, float] = {}

    async def keep(self) -> None:
        """Count now, and again and again from then on."""
        failures = LoopFailures("metrics.count_destinations")
        while True:
            await failures.attempt(self.count())
            await self._clock.sleep(max(EVERY, failures.pause))

    async def count(self) -> None:
        """Count once. In a long queue a sample stands for all, as in `QueueCounts`."""
        now = self._clock.now()
        size = await destination_queries.items(self._pool, self._most)
        scale = 1.0
        arguments = (now - LONG, UNTIL_FETCHED, QUARANTINED, PREFIX, SHOWN)
        if size < self._most:
            rows = await destination_queries.count(self._pool, *arguments, self._most)
        else:
            share = min(1.0, COUNTING.pages / await self._pool.fetchval(COUNTING.table.size))
            rows = await destination_queries.sample(self._pool, *arguments, 100 * share)
            scale = 1 / share
        self._note(rows, scale, now)

    def _note(self, rows: Sequence[asyncpg.Record], scale: float, now: datetime) -> None:
        self.items, self.oldest = {}, {}
        for row in rows:
            labels = (row["destination"] or OTHERS,)
            self.items[labels] = round(row["items"] * scale)
            self.oldest[labels] = (now - row["since"]).total_seconds()


async def keep_destinations_counted(pool: asyncpg.Pool, clock: Clock) -> None:
    """Count for the Prometheus metrics, until cancelled."""
    counts = DestinationCounts(pool, clock)
    prometheus.DESTINATION_ITEMS.read = lambda: counts.items
    prometheus.DESTINATION_OLDEST.read = lambda: counts.oldest
    await counts.keep()
