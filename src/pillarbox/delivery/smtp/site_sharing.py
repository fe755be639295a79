"""Sharing receiving sites: the processes that deliver divide the slots of each site among them, and a
complaint of a site to one of them slows down all (architecture 2.5, OUT-11, OUT-12).

Each process has its own rate control; only complaints are shared, as a row of each site, read once a second.
So the process that finds a site out of reach tries it first. The others try it a little later, unless the
first has reported more by then.
"""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from uuid import UUID

import asyncpg

from pillarbox.delivery.rate_control import HOLD_SECONDS
from pillarbox.delivery.site_scheduler import SiteScheduler
from pillarbox.delivery.smtp import site_queries
from pillarbox.kernel.clock import Clock

EXCHANGE_EVERY = 1.0
LIVES = timedelta(seconds=35)
"""A process that has not been seen for longer than three of its heartbeats has no share."""

OVERLAP = timedelta(seconds=15)
"""Complaints are read again for so long: clocks differ, and commits take their time."""


class SiteSharing:
    """Shares slots and complaints between the scheduler of this process and those of the others."""

    def __init__(self, pool: asyncpg.Pool, clock: Clock, owner: UUID, *, is_polled: bool = False) -> None:
        """Build the sharing; with `is_polled`, `changed` is not called where nothing is to be read."""
        self.news = asyncio.Event()
        """Set where a site has complained a moment ago."""
        self._is_polled = is_polled
        self._is_changed = True
        self._pool = pool
        self._clock = clock
        self._owner = owner
        self._since: datetime | None = None
        self._known: dict[str, datetime] = {}

    async def divide(self, scheduler: SiteScheduler) -> None:
        """Take this process's part of the slots; called with each heartbeat."""
        living = await site_queries.live_processes(self._pool, self._clock.now() - LIVES)
        scheduler.share(max(1, living))

    async def begin(self) -> None:
        """Forget what ended processes could not reach: a start tries it, with the settings of now."""
        await site_queries.forget_ended(self._pool, self._clock.now() - LIVES)

    @property
    def keeps_complaints(self) -> bool:
        """Whether complaints of other processes were found at the last look."""
        return bool(self._known)

    def changed(self) -> None:
        """Read complaints again: there are some, or were at the last look."""
        self._is_changed = True
        self.news.set()

    async def exchange_complaints(self, scheduler: SiteScheduler) -> None:
        """Publish complaints that this process got, and apply those of the other processes."""
        now = self._clock.now()
        complaints = scheduler.complaints(self._clock.boottime())
        if complaints:
            await site_queries.publish_complaints(self._pool, complaints, self._owner, now)
        if self._is_polled and not (complaints or self._is_changed):
            return
        self._is_changed = False
        since = self._since if self._since is not None else now - timedelta(seconds=HOLD_SECONDS)
        received = await site_queries.read_complaints(self._pool, since, self._owner, now)
        for complaint, at in received:
            if self._known.get(complaint.site) != at:
                scheduler.apply_complaint(complaint, self._clock.boottime())
        self._known = {complaint.site: at for complaint, at in received}
        self._since = now - OVERLAP
