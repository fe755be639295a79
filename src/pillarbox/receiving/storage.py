"""How much received mail a team has, and whether it may have more (INB-09).

Octets are counted by UTC day in the commit that stores the mail or removes it, so the sum of a team's days
is what it has. Who is full is decided at RCPT: what is under way then still comes in.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final
from uuid import UUID

from pillarbox.kernel.clock import Clock
from pillarbox.kernel.observability.log import get
from pillarbox.kernel.postgres.database import Source
from pillarbox.usage import counting

log = get("receiving")

NEARLY: Final = 0.9
WARN_EVERY: Final = 3600.0
MOST_WARNED: Final = 10_000


class Storage:
    """The room of each team; `most` octets, 0 is no limit."""

    def __init__(self, source: Source, clock: Clock, limit: int) -> None:
        self._source = source
        self._clock = clock
        self._most = limit
        self._warned: dict[UUID, float] = {}

    async def full(self, teams: Collection[UUID]) -> frozenset[UUID]:
        """Return those of the teams that have no room left; one with nearly none is logged."""
        if not self._most or not teams:
            return frozenset()
        stored = await counting.stored_octets(self._source, teams)
        for team_id, octets in stored.items():
            if octets >= NEARLY * self._most:
                self._warn(team_id, octets)
        return frozenset(team_id for team_id, octets in stored.items() if octets >= self._most)

    def _warn(self, team_id: UUID, octets: int) -> None:
        now = self._clock.boottime()
        last = self._warned.get(team_id)
        if last is not None and now - last < WARN_EVERY:
            return
        if len(self._warned) >= MOST_WARNED:
            self._warned.clear()
        self._warned[team_id] = now
        log.warning("receiving.nearly_full", team=team_id, octets=octets, most=self._most)
