"""How many deliveries wait, and since when (`kernel.observability.queue_counts`).

What a listener reads (`pillarbox webhooks listen`) is never due and not counted.

    leased   a process holds it
    due      the next free process takes it
    waiting  its next attempt is still to come
"""

from __future__ import annotations

import asyncpg

from pillarbox.kernel.clock import Clock
from pillarbox.kernel.observability.queue_counts import QueueCounting, QueueCounts
from pillarbox.webhooks.dispatch import prometheus

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


COUNTING = QueueCounting(
    name="webhook_deliveries",
    states=("due", "waiting", "leased"),
    count=COUNT,
    sample=SAMPLE,
    size=SIZE,
    most=10_000,
    pages=150,
)


async def keep_counted(pool: asyncpg.Pool, clock: Clock) -> None:
    """Count the queue for the Prometheus metrics, until cancelled."""
    counts = QueueCounts(pool, clock, COUNTING)
    prometheus.QUEUE.read = counts.read_items
    prometheus.QUEUE_OLDEST.read = counts.read_oldest
    await counts.keep()
