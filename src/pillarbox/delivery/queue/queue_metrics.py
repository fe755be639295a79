"""How much waits in the queue, and for how long (`kernel.observability.queue_counts`).

An item is in exactly one state:

    leased       a process holds it
    held         an attachment is still to be fetched
    quarantined  it ended three processes
    paused       it would be due, but the operator holds it back
    due          the next free process takes it
    waiting      its time is still to come: the next attempt, or the sender's
"""

from __future__ import annotations

import asyncpg

from pillarbox.delivery import prometheus
from pillarbox.delivery.items import QUARANTINED, UNTIL_FETCHED
from pillarbox.kernel.clock import Clock
from pillarbox.kernel.observability.queue_counts import QueueCounting, QueueCounts

# Across teams: the installation's queue. At most $4 rows are read.
COUNT = """
    SELECT CASE WHEN d.owner IS NOT NULL THEN 'leased'
                WHEN d.due_at = $2 THEN 'held'
                WHEN d.due_at = $3 THEN 'quarantined'
                WHEN d.due_at > $1 THEN 'waiting'
                WHEN EXISTS (SELECT FROM paused p
                              WHERE p.team_id IN (d.team_id, '00000000-0000-0000-0000-000000000000')
                                AND p.destination IN ('', d.destination,
                                                      replace(d.destination, 'copies:', ''))) THEN 'paused'
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
                                AND p.destination IN ('', d.destination,
                                                      replace(d.destination, 'copies:', ''))) THEN 'paused'
                ELSE 'due' END AS state,
           count(*) AS items, min(d.created_at) AS oldest, min(d.due_at) AS first_due
      FROM deliveries AS d TABLESAMPLE SYSTEM ($4)
     GROUP BY 1
"""

SIZE = """
    SELECT pg_relation_size('deliveries') / current_setting('block_size')::bigint
"""


COUNTING = QueueCounting(
    name="deliveries",
    states=("due", "waiting", "leased", "held", "paused", "quarantined"),
    count=COUNT,
    sample=SAMPLE,
    size=SIZE,
    most=50_000,
    pages=1_000,
    arguments=(UNTIL_FETCHED, QUARANTINED),
)


async def keep_counted(pool: asyncpg.Pool, clock: Clock) -> None:
    """Count the queue for the Prometheus metrics, until cancelled."""
    counts = QueueCounts(pool, clock, COUNTING)
    prometheus.QUEUE.read = counts.read_items
    prometheus.QUEUE_OLDEST.read = counts.read_oldest
    prometheus.QUEUE_LAG.read = lambda: {(): counts.lag}
    await counts.keep()
