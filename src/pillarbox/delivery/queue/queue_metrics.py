"""How much waits in the queue, and for how long: counted every 15 seconds by one process of the host.

The cost is bounded. Up to `MOST` rows are counted one by one. Beyond that the table is sampled:
`PAGES` of its pages are read, and their rows stand for all of them.

An item is in exactly one state:

    leased       a process holds it
    held         an attachment is still to be fetched
    quarantined  it ended three processes
    paused       it would be due, but the operator holds it back
    due          the next free process takes it
    waiting      its time is still to come: the next attempt, or the sender's
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import asyncpg

from pillarbox.delivery import prometheus
from pillarbox.delivery.items import HELD, QUARANTINED
from pillarbox.kernel.clock import Clock
from pillarbox.kernel.observability.log import get
from pillarbox.kernel.postgres.database import TROUBLE

log = get("metrics")

EVERY = 15.0
MOST = 50_000
PAGES = 1_000
QUERY_TIMEOUT = 5.0
STATES = ("due", "waiting", "leased", "held", "paused", "quarantined")

# Across teams: the installation's queue. At most $4 rows are read.
COUNT = """
    SELECT CASE WHEN d.owner IS NOT NULL THEN 'leased'
                WHEN d.due_at = $2 THEN 'held'
                WHEN d.due_at = $3 THEN 'quarantined'
                WHEN d.due_at > $1 THEN 'waiting'
                WHEN EXISTS (SELECT FROM paused p
                              WHERE p.team_id IN (d.team_id, '00000000-0000-0000-0000-000000000000')
                                AND p.destination IN (d.destination, '')) THEN 'paused'
                ELSE 'due' END AS state,
           count(*) AS items, min(d.created_at) AS oldest, min(d.due_at) AS first_due
      FROM (SELECT team_id, destination, owner, due_at, created_at FROM deliveries LIMIT $4) AS d
     GROUP BY 1
"""

# Across teams, as above: $4 percent of the table's pages are read.
SAMPLE = """
    SELECT CASE WHEN d.owner IS NOT NULL THEN 'leased'
                WHEN d.due_at = $2 THEN 'held'
                WHEN d.due_at = $3 THEN 'quarantined'
                WHEN d.due_at > $1 THEN 'waiting'
                WHEN EXISTS (SELECT FROM paused p
                              WHERE p.team_id IN (d.team_id, '00000000-0000-0000-0000-000000000000')
                                AND p.destination IN (d.destination, '')) THEN 'paused'
                ELSE 'due' END AS state,
           count(*) AS items, min(d.created_at) AS oldest, min(d.due_at) AS first_due
      FROM deliveries AS d TABLESAMPLE SYSTEM ($4)
     GROUP BY 1
"""

SIZE = """
    SELECT pg_relation_size('deliveries') / current_setting('block_size')::bigint
"""


class QueueMetrics:
    """Counts the queue for the Prometheus metrics."""

    def __init__(self, pool: asyncpg.Pool, clock: Clock, *, most: int = MOST, pages: int = PAGES) -> None:
        self._pool = pool
        self._clock = clock
        self._most = most
        self._pages = pages
        self.items: dict[str, float] = {}
        self.oldest: dict[str, float] = {}
        self.lag = 0.0

    async def keep(self) -> None:
        """Count now, and every 15 seconds from then on."""
        prometheus.QUEUE.read = lambda: _labelled(self.items)
        prometheus.QUEUE_OLDEST.read = lambda: _labelled(self.oldest)
        prometheus.QUEUE_LAG.read = lambda: {(): self.lag}
        while True:
            try:
                await self.count()
            except TROUBLE as trouble:
                log.warning("metrics.queue_not_counted", trouble=repr(trouble)[:200])
            await self._clock.sleep(EVERY)

    async def count(self) -> None:
        """Count once. Ages in a queue that is sampled are at least what is reported."""
        now = self._clock.now()
        rows = await self._pool.fetch(COUNT, now, HELD, QUARANTINED, self._most, timeout=QUERY_TIMEOUT)
        scale = 1.0
        if sum(row["items"] for row in rows) >= self._most:
            size = await self._pool.fetchval(SIZE)
            share = min(1.0, self._pages / size)
            rows = await self._pool.fetch(SAMPLE, now, HELD, QUARANTINED, 100 * share, timeout=QUERY_TIMEOUT)
            scale = 1 / share
        self._note(rows, scale, now)

    def _note(self, rows: list[Any], scale: float, now: datetime) -> None:
        self.items = dict.fromkeys(STATES, 0.0)
        self.oldest = dict.fromkeys(STATES, 0.0)
        self.lag = 0.0
        for row in rows:
            state = row["state"]
            self.items[state] = round(row["items"] * scale)
            self.oldest[state] = max(0.0, (now - row["oldest"]).total_seconds())
            if state == "due":
                self.lag = max(0.0, (now - row["first_due"]).total_seconds())


def _labelled(values: dict[str, float]) -> dict[tuple[str, ...], float]:
    return {(state,): value for state, value in values.items()}
