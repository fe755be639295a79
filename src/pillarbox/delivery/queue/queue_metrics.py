"""How much waits in the queue, and for how long (`kernel.work.queue_counts`).

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
from pillarbox.delivery.queries import ITEMS
from pillarbox.kernel.clock import Clock
from pillarbox.kernel.work.queue_counts import QueueCounting, QueueCounts

COUNTING = QueueCounting(
    table=ITEMS,
    states=("due", "waiting", "leased", "held", "paused", "quarantined"),
    most=50_000,
    pages=1_000,
    arguments=(UNTIL_FETCHED, QUARANTINED),
)


async def keep_counted(pool: asyncpg.Pool, clock: Clock) -> None:
    """Count the queue for the Prometheus metrics, until cancelled."""
    counts = QueueCounts(pool, clock, COUNTING)
    await counts.keep(prometheus.QUEUE, prometheus.QUEUE_OLDEST, prometheus.QUEUE_LAG)
