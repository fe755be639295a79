"""Reports usage: in every answer to a team with a quota, and in `GET /usage`.

An answer shows the usage after its request had begun. A reading that is younger than the request serves, so
requests that come together share one, and those that were accepted have theirs from the commit.
"""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

import asyncpg

from pillarbox.kernel.clock import Clock
from pillarbox.kernel.observability.log import get
from pillarbox.kernel.postgres import time_limit
from pillarbox.kernel.postgres.database import TROUBLE, Source
from pillarbox.kernel.security.authentication import Caller
from pillarbox.usage import queries
from pillarbox.usage.queries import UsedUnits
from pillarbox.usage.windows import day_of, month_of

log = get("usage")

MOST_READINGS: Final = 10_000
DAILY: Final = "x-resend-daily-quota"
MONTHLY: Final = "x-resend-monthly-quota"


class UsageReading(NamedTuple):
    """The units of the day and of the month as they were at an instant."""

    at: datetime
    daily: int
    monthly: int


class UsageMeter:
    """The meter over rollups and `usage_days`."""

    def __init__(self, pool: asyncpg.Pool, clock: Clock) -> None:
        self._pool = pool
        self._clock = clock
        self._known: dict[UUID, UsageReading] = {}
        self._locks: dict[UUID, asyncio.Lock] = {}

    async def headers(self, caller: Caller, since: datetime) -> dict[str, str]:
        try:
            found = await self._reading(caller.team_id, since)
        except TROUBLE as trouble:
            log.warning("usage.not_known", error=type(trouble).__name__)
            return {}
        headers = {}
        if caller.daily_quota is not None:
            headers[DAILY] = str(found.daily)
        if caller.monthly_quota is not None:
            headers[MONTHLY] = str(found.monthly)
        return headers

    def note(self, team_id: UUID, daily: int, monthly: int) -> None:
        """Note what the team had used when a transaction of ours was committed."""
        if len(self._known) >= MOST_READINGS:
            self._known.clear()
            self._locks.clear()
        self._known[team_id] = UsageReading(self._clock.now(), daily, monthly)

    async def read(self, source: Source, team_id: UUID) -> UsedUnits:
        """Return the team's usage of this day and month."""
        now = self._clock.now()
        return (await queries.used(source, [(team_id, day_of(now), month_of(now))]))[0]

    async def _reading(self, team_id: UUID, since: datetime) -> UsageReading:
        known = self._known.get(team_id)
        if known is not None and known.at > since:
            return known
        async with time_limit.bounded(), self._locks.setdefault(team_id, asyncio.Lock()):
            known = self._known.get(team_id)
            if known is not None and known.at > since:
                return known
            began = self._clock.now()
            used = await self.read(self._pool, team_id)
            found = UsageReading(
                began, used.day_sent + used.day_received, used.month_sent + used.month_received
            )
            self._known[team_id] = found
            return found
