"""How much waits in a table that is a queue, by state: counted again and again by one process of the host.

The cost is bounded. Up to `most` rows are counted one by one. Beyond that the table is sampled: `pages` of
its pages are read, and their rows stand for all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import asyncpg

from pillarbox.kernel.clock import Clock
from pillarbox.kernel.observability.log import get
from pillarbox.kernel.observability.loop_failures import LoopFailures
from pillarbox.kernel.observability.metrics import Gauge
from pillarbox.kernel.work.lease_table import LeaseTable

log = get("metrics")

EVERY = 15.0
QUERY_TIMEOUT = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueCounting:
    """How one queue is counted: `states` are those of the table that are shown, `arguments` the values of its
    `state`. Up to `most` rows are counted, and of longer tables `pages` are read."""

    table: LeaseTable
    states: Sequence[str]
    most: int
    pages: int
    arguments: tuple[object, ...] = ()


class QueueCounts:
    """The newest counts of one queue: items, and seconds since the oldest, by state."""

    def __init__(self, pool: asyncpg.Pool, clock: Clock, counting: QueueCounting) -> None:
        self._pool = pool
        self._clock = clock
        self._counting = counting
        self.items: dict[str, float] = {}
        self.oldest: dict[str, float] = {}
        self.lag = 0.0
        """For how many seconds the item has been due that waits longest to be taken."""

    async def keep(self, items: Gauge, oldest: Gauge, lag: Gauge | None = None) -> None:
        """Count for these gauges now, and every 15 seconds from then on. The first two have the label
        `state`."""
        items.read = lambda: {(state,): count for state, count in self.items.items()}
        oldest.read = lambda: {(state,): age for state, age in self.oldest.items()}
        if lag is not None:
            lag.read = lambda: {(): self.lag}
        failures = LoopFailures(f"metrics.count_{self._counting.table.name}")
        while True:
            await failures.attempt(self.count())
            await self._clock.sleep(max(EVERY, failures.pause))

    async def count(self) -> None:
        """Count once. Ages in a queue that is sampled are at least what is reported."""
        how, now = self._counting, self._clock.now()
        table, values = how.table, (now, *how.arguments)
        rows = await self._pool.fetch(table.count, *values, how.most, timeout=QUERY_TIMEOUT)
        scale = 1.0
        if sum(row["items"] for row in rows) >= how.most:
            share = min(1.0, how.pages / await self._pool.fetchval(table.size))
            rows = await self._pool.fetch(table.sample, *values, 100 * share, timeout=QUERY_TIMEOUT)
            scale = 1 / share
        self._note(rows, scale, now)

    def _note(self, rows: Sequence[Any], scale: float, now: datetime) -> None:
        self.items = dict.fromkeys(self._counting.states, 0.0)
        self.oldest = dict.fromkeys(self._counting.states, 0.0)
        self.lag = 0.0
        for row in rows:
            state = row["state"]
            if state not in self.items:
                continue
            self.items[state] = round(row["items"] * scale)
            self.oldest[state] = max(0.0, (now - row["oldest"]).total_seconds())
            if state == "due":
                self.lag = max(0.0, (now - row["first_due"]).total_seconds())
