"""How many deliveries wait, and since when: counted every 15 seconds by one process of the host.

Up to `MOST` rows are counted one by one; beyond that pages of the table are sampled, so the cost is bounded.
What a listener reads (`pillarbox webhooks listen`) is never due and not counted.

    leased   a process holds it
    due      the next free process takes it
    waiting  its next attempt is still to come
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import asyncpg

from pillarbox.kernel.clock import Clock
from pillarbox.kernel.observability.log import get
from pillarbox.kernel.postgres.database import TROUBLE
from pillarbox.webhooks.dispatch import prometheus

log = get("metrics")

EVERY = 15.0
MOST = 10_000
PAGES = 150
QUERY_TIMEOUT = 5.0
STATES = ("due", "waiting", "leased")

# Across teams: the installation's queue. At most $2 rows are read.
COUNT = """
    SELECT CASE WHEN d.owner IS NOT NULL THEN 'leased'
                WHEN d.due_at = 'infinity' THEN 'listener'
                WHEN d.due_at > $1 THEN 'waiting'
                ELSE 'due' END AS state,
           count(*) AS items, min(d.at) AS oldest
      FROM (SELECT team_id, owner, due_at, at FROM webhook_deliveries LIMIT $2) AS d
     GROUP BY 1
"""

# Across teams, as above: $2 percent of the table's pages are read.
SAMPLE = """
    SELECT CASE WHEN d.owner IS NOT NULL THEN 'leased'
                WHEN d.due_at = 'infinity' THEN 'listener'
                WHEN d.due_at > $1 THEN 'waiting'
                ELSE 'due' END AS state,
           count(*) AS items, min(d.at) AS oldest
      FROM webhook_deliveries AS d TABLESAMPLE SYSTEM ($2)
     GROUP BY 1
"""

SIZE = """
    SELECT pg_relation_size('webhook_deliveries') / current_setting('block_size')::bigint
"""


class WebhookQueueMetrics:
    """Counts the queue for the Prometheus metrics."""

    def __init__(self, pool: asyncpg.Pool, clock: Clock, *, most: int = MOST, pages: int = PAGES) -> None:
        self._pool = pool
        self._clock = clock
        self._most = most
        self._pages = pages
        self.items: dict[str, float] = {}
        self.oldest: dict[str, float] = {}

    async def keep(self) -> None:
        """Count now, and every 15 seconds from then on."""
        prometheus.QUEUE.read = lambda: _labelled(self.items)
        prometheus.QUEUE_OLDEST.read = lambda: _labelled(self.oldest)
        while True:
            try:
                await self.count()
            except TROUBLE as trouble:
                log.warning("metrics.webhooks_not_counted", trouble=repr(trouble)[:200])
            await self._clock.sleep(EVERY)

    async def count(self) -> None:
        """Count once. Ages in a queue that is sampled are at least what is reported."""
        now = self._clock.now()
        rows = await self._pool.fetch(COUNT, now, self._most, timeout=QUERY_TIMEOUT)
        scale = 1.0
        if sum(row["items"] for row in rows) >= self._most:
            share = min(1.0, self._pages / await self._pool.fetchval(SIZE))
            rows = await self._pool.fetch(SAMPLE, now, 100 * share, timeout=QUERY_TIMEOUT)
            scale = 1 / share
        self._note(rows, scale, now)

    def _note(self, rows: list[Any], scale: float, now: datetime) -> None:
        self.items = dict.fromkeys(STATES, 0.0)
        self.oldest = dict.fromkeys(STATES, 0.0)
        for row in rows:
            if row["state"] in self.items:
                self.items[row["state"]] = round(row["items"] * scale)
                self.oldest[row["state"]] = max(0.0, (now - row["oldest"]).total_seconds())


def _labelled(values: dict[str, float]) -> dict[tuple[str, ...], float]:
    return {(state,): value for state, value in values.items()}
