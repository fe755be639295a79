"""How many deliveries wait, and since when (`kernel.work.queue_counts`).

What a listener reads (`pillarbox webhooks listen`) is never due and not counted.

    leased   a process holds it
    due      the next free process takes it
    waiting  its next attempt is still to come
"""

from __future__ import annotations

import asyncpg

from pillarbox.kernel.clock import Clock
from pillarbox.kernel.work.queue_counts import QueueCounting, QueueCounts
from pillarbox.webhooks.dispatch import prometheus
from pillarbox.webhooks.dispatch.queries import DELIVERIES

COUNTING = QueueCounting(table=DELIVERIES, states=("due", "waiting", "leased"), most=10_000, pages=150)


async def keep_counted(pool: asyncpg.Pool, clock: Clock) -> None:
    """Count the queue for the Prometheus metrics, until cancelled."""
    await QueueCounts(pool, clock, COUNTING).keep(prometheus.QUEUE, prometheus.QUEUE_OLDEST)
