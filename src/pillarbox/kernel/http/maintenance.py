"""Maintenance: new requests and mail are deferred while accepted work is carried out.

The switch is a row that every process looks for once a second; it may be thrown from any machine that
reaches the database.
"""

from __future__ import annotations

from typing import Final

import asyncpg

from pillarbox.kernel.clock import Clock
from pillarbox.kernel.observability.log import get
from pillarbox.kernel.observability.loop_failures import LoopFailures
from pillarbox.kernel.postgres.database import TROUBLE, Source
from pillarbox.kernel.wire.problems import ServerOverloaded

log = get("maintenance")

LOOK_SECONDS: Final = 1.0
KNOWN_SECONDS: Final = LOOK_SECONDS + 0.2
"""After so long every process that reaches its database knows of a change."""

RETRY_AFTER: Final = 60
LONGEST_RETRY: Final = 86_400

# The table is the installation's and has at most one row.
READ = "SELECT retry_after FROM maintenance"

BEGIN = """
    INSERT INTO maintenance (since, retry_after) VALUES (now(), $1)
    ON CONFLICT (id) DO UPDATE SET retry_after = excluded.retry_after
"""

END = "DELETE FROM maintenance"


class UnderMaintenance(ServerOverloaded):
    def __init__(self, retry_after: int) -> None:
        super().__init__("The service is under maintenance. Try again later.", retry_after)


class Maintenance:
    """Whether the installation is in maintenance, as this process saw it within the last second."""

    def __init__(self, pool: asyncpg.Pool, clock: Clock) -> None:
        self._pool = pool
        self._clock = clock
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

    async def run(self) -> None:
        """Look once a second."""
        failures = LoopFailures("maintenance.watch")
        while True:
            await self._clock.sleep(max(LOOK_SECONDS, failures.pause))
            await failures.attempt(self.look())


async def current(source: Source) -> int | None:
    """After how many seconds clients are told to come again; None without maintenance."""
    found: int | None = await source.fetchval(READ)
    return found


async def begin(source: Source, retry_after: int = RETRY_AFTER) -> None:
    """Put everybody off from the next second on."""
    await source.execute(BEGIN, retry_after)


async def end(source: Source) -> None:
    """Accept requests and sessions again."""
    await source.execute(END)
