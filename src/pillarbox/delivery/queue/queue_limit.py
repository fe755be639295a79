"""The cap of the queue (DUR-10): mail is refused while more work waits than the operator lets wait.

Accepting is cheaper than delivering, so a client that never stops could fill any disk with mail that nobody
can send in time. How much waits is estimated: most checks read only the size of the table, and
only where that leaves it open a sample of its pages is read.
"""

from __future__ import annotations

import asyncio

import asyncpg

from pillarbox.delivery.queries import ITEMS, sampled_items
from pillarbox.kernel.clock import Clock
from pillarbox.kernel.observability.log import get
from pillarbox.kernel.observability.loop_failures import LoopFailures
from pillarbox.kernel.wire.problems import ServerOverloaded
from pillarbox.kernel.work.queue_poll import SELDOM, woken

log = get("delivery")

LOOK_EVERY = 5.0
RETRY_SECONDS = 30
QUERY_TIMEOUT = 5.0
MOST_PER_PAGE = 100
"""Rows of the queue that a page holds at the most."""

COPIES_PERCENT = 80
"""How full of the cap copies of broadcasts may make the queue, so that there is room for other mail."""

PAGES = 1_000
"""Pages that are read for a sample."""


class QueueFull(ServerOverloaded):
    """Too much waits; nothing was accepted."""

    def __init__(self) -> None:
        super().__init__("Too much mail is waiting to be delivered. Try again later.", RETRY_SECONDS)


class QueueLimit:
    """Whether more than `most` items are in the queue, as it was seen a few seconds ago; 0 is no cap."""

    def __init__(self, pool: asyncpg.Pool, clock: Clock, limit: int, *, pages: int = PAGES) -> None:
        self._pool = pool
        self._clock = clock
        self._most = limit
        self._pages = pages
        self._failures = LoopFailures("delivery.count_queue")
        self._most_with_copies = limit * COPIES_PERCENT // 100
        self._news = asyncio.Event()
        self.is_over = False
        self.is_full_for_copies = False

    def check(self) -> None:
        """Raise `QueueFull` while there is more."""
        if self.is_over:
            raise QueueFull

    def check_copies(self) -> None:
        """Raise `QueueFull` while there is no room for copies of broadcasts: a million of them to a server
        that is down must not keep out other mail."""
        if self.is_full_for_copies:
            raise QueueFull

    def look_again(self) -> None:
        """Have the queue looked at again: there is mail in it, or it was full at the last look."""
        self._news.set()

    async def look(self) -> None:
        """Count the queue; where that fails the last result is kept."""
        await self._failures.attempt(self._count())

    async def _count(self) -> None:
        items = await self._items()
        self.is_full_for_copies = items > self._most_with_copies
        was_over, self.is_over = self.is_over, items > self._most
        if self.is_over != was_over:
            log.warning("delivery.queue_full" if self.is_over else "delivery.queue_open", items=items)

    async def run(self) -> None:
        """Check every few seconds while there is mail in the queue, where there is a cap."""
        while self._most:
            await self.look()
            await self._clock.sleep(max(LOOK_EVERY, self._failures.pause))
            await woken(self._news, SELDOM)

    async def _items(self) -> int:
        """Return about how many items there are; 0 where the size alone shows that there is room for
        all mail."""
        pages: int = await self._pool.fetchval(ITEMS.size, timeout=QUERY_TIMEOUT)
        if pages * MOST_PER_PAGE <= self._most_with_copies:
            return 0
        share = min(1.0, self._pages / pages)
        found = await sampled_items(self._pool, 100 * share, QUERY_TIMEOUT)
        return round(found / share)
