"""Limits of minutes and hours that hold for all nodes together (docs/decisions/0054).

The limited requests are rare and write to the database anyway, so where several nodes take requests each
count is a row there. The windows of this node are its knowledge of them. A limit that they show as spent is
refused without a question. They count alone where there is one node, or no database.
"""

from __future__ import annotations

import math

import asyncpg

from pillarbox.kernel.observability.log import get
from pillarbox.kernel.postgres.database import TROUBLE
from pillarbox.kernel.security import rate_queries
from pillarbox.kernel.security.rate_limit import Windows, WindowState
from pillarbox.kernel.security.team_rate import TeamRate

log = get("rate_limit")


class SharedLimits:
    """Counts by key, as `Windows.take` does. When a second node begins, what the first one has counted before
    does not count for both."""

    def __init__(self, windows: Windows, rate: TeamRate, pool: asyncpg.Pool) -> None:
        self._windows = windows
        self._rate = rate
        self._pool = pool

    async def take(self, key: bytes, limit: int, seconds: float) -> WindowState:
        """Count one request of `key`, or refuse it without counting."""
        if self._rate.nodes == 1 or self._windows.is_spent(key, limit):
            return self._windows.take(key, limit, seconds)
        try:
            taken, left = await rate_queries.count(self._pool, key, limit, seconds)
        except TROUBLE as trouble:
            log.warning("rate_limit.not_counted", trouble=repr(trouble)[:200])
            return self._windows.take(key, limit, seconds)
        self._windows.show(key, min(taken, limit), left)
        return WindowState(taken <= limit, limit, max(0, limit - taken), max(1, math.ceil(left)))

    def wait(self, key: bytes, limit: int) -> int:
        """Return the seconds until the window of `key` has a place again, as far as this node knows."""
        return self._windows.wait(key, limit)
