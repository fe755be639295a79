"""What has been used, asked for by every answer to a team with a quota, and by `GET /usage`."""

from __future__ import annotations

from typing import Final
from uuid import UUID

import asyncpg

from pillarbox.kernel.auth import Caller
from pillarbox.kernel.clock import Clock
from pillarbox.kernel.db import GONE, Source
from pillarbox.kernel.log import get
from pillarbox.usage import queries
from pillarbox.usage.queries import Used
from pillarbox.usage.windows import day_of, month_of

log = get("usage")

REMEMBERED_SECONDS: Final = 1.0
MOST_REMEMBERED: Final = 10_000
DAILY: Final = "x-resend-daily-quota"
MONTHLY: Final = "x-resend-monthly-quota"


class UsageMeter:
    """The meter over rollups and `usage_days`."""

    def __init__(self, pool: asyncpg.Pool, clock: Clock) -> None:
        self._pool = pool
        self._clock = clock
        self._known: dict[UUID, tuple[float, Used]] = {}

    async def headers(self, caller: Caller, *, fresh: bool) -> dict[str, str]:
        try:
            found = await self._used(caller.team_id, fresh=fresh)
        except (*GONE, asyncpg.PostgresError, TimeoutError) as trouble:
            log.warning("usage.not_known", error=type(trouble).__name__)
            return {}
        headers = {}
        if caller.daily_quota is not None:
            headers[DAILY] = str(found.day_sent + found.day_received)
        if caller.monthly_quota is not None:
            headers[MONTHLY] = str(found.month_sent + found.month_received)
        return headers

    async def read(self, source: Source, team_id: UUID) -> Used:
        """What the team has used of this day and month."""
        now = self._clock.now()
        return (await queries.used(source, [(team_id, day_of(now), month_of(now))]))[0]

    async def _used(self, team_id: UUID, *, fresh: bool) -> Used:
        known = self._known.get(team_id)
        now = self._clock.boottime()
        if not fresh and known is not None and now < known[0]:
            return known[1]
        found = await self.read(self._pool, team_id)
        if len(self._known) >= MOST_REMEMBERED:
            self._known.clear()
        self._known[team_id] = (now + REMEMBERED_SECONDS, found)
        return found
