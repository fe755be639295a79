"""How old the newest backup is, as `pillarbox backup` has noted it in the database.

One process of the host looks. Where no backup was ever made by that command nothing is shown: another program
may make them.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

import asyncpg

from pillarbox.kernel.clock import Clock
from pillarbox.kernel.observability import queries
from pillarbox.kernel.observability.log import get
from pillarbox.kernel.observability.loop_failures import LoopFailures
from pillarbox.kernel.observability.metrics import LEAST, Gauge

log = get("metrics")

EVERY: Final = 30.0
QUERY_TIMEOUT: Final = 5.0

AGE = Gauge(
    "pillarbox_backup_age_seconds",
    "Age of the newest backup; nothing where `pillarbox backup` has made none.",
    over=LEAST,
)


class BackupAge:
    """Looks now and then when the last backup was made."""

    def __init__(self, pool: asyncpg.Pool, clock: Clock) -> None:
        self._pool = pool
        self._clock = clock
        self._last: datetime | None = None

    def read(self) -> dict[tuple[str, ...], float]:
        """Return the age now, as the gauge reads it."""
        if self._last is None:
            return {}
        return {(): max(0.0, (self._clock.now() - self._last).total_seconds())}

    async def keep(self) -> None:
        """Look now, and every half minute from then on."""
        AGE.read = self.read
        failures = LoopFailures("metrics.backup_age")
        while True:
            await failures.attempt(self._look())
            await self._clock.sleep(max(EVERY, failures.pause))

    async def _look(self) -> None:
        self._last = await queries.last_backup(self._pool, timeout=QUERY_TIMEOUT)
