"""Maintenance: new requests and mail are deferred while accepted work is carried out.

The switch is a row that every process knows of within two seconds; it may be thrown from any machine that
reaches the database.
"""

from __future__ import annotations

import asyncio
from typing import Final

import asyncpg

from pillarbox.kernel.http import queries
from pillarbox.kernel.observability.log import get
from pillarbox.kernel.observability.loop_failures import LoopFailures
from pillarbox.kernel.postgres.database import TROUBLE, Source
from pillarbox.kernel.wire.problems import ServerOverloaded
from pillarbox.kernel.work.queue_poll import FRESH, POLL_EVERY, SELDOM, woken

log = get("maintenance")

KNOWN_SECONDS: Final = POLL_EVERY + FRESH + 0.3
"""After so long every process that reaches its database knows of a change."""

RETRY_AFTER: Final = 60
LONGEST_RETRY: Final = 86_400


class UnderMaintenance(ServerOverloaded):
    def __init__(self, retry_after: int) -> None:
        super().__init__("The service is under maintenance. Try again later.", retry_after)


class Maintenance:
    """Whether the installation is in maintenance, as this process saw it within the last two seconds."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool
        self._news = asyncio.Event()
        self._retry_after: int | None = None

    @property
    def is_on(self) -> bool:
        return self._retry_after is not None

    def check(self) -> None:
        """Raise the 503 of maintenance, if it is on."""
        if self._retry_after is not None:
            raise UnderMaintenance(self._retry_after)

    async def look(self) -> None:
        """Find out how it stands now; what was known is kept while the database does not answer."""
        try:
            found = await current(self._pool)
        except TROUBLE:
            return
        if (found is None) != (self._retry_after is None):
            log.info("maintenance.changed", on=found is not None)
        self._retry_after = found

    def look_again(self) -> None:
        """Have maintenance looked at again: it is on, or was at the last look."""
        self._news.set()

    async def run(self) -> None:
        """Look whenever the poll of queues says so."""
        failures = LoopFailures("maintenance.watch")
        while True:
            await woken(self._news, SELDOM)
            await failures.attempt(self.look())


async def current(source: Source) -> int | None:
    """Return the seconds after which clients are told to come again; None without maintenance."""
    return await queries.maintenance(source)


async def begin(source: Source, retry_after: int = RETRY_AFTER) -> None:
    """Put everybody off from the next second on."""
    await queries.begin_maintenance(source, retry_after)


async def end(source: Source) -> None:
    """Accept requests and sessions again."""
    await queries.end_maintenance(source)
