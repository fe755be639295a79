"""Pausing: mail that the operator holds back for a while, by team, by destination, or all of it.

A scope is a row of `paused`. What is in it is not claimed (`queries.CLAIM` checks it) and not taken over from
an accept. Processes that have it in memory give it back when its turn comes; an attempt that is on the wire
ends as it ends. Mail is still accepted. The delivery window goes on meanwhile; whatever is left of it, an
item gets at least one attempt when its scope is resumed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

import asyncpg

from pillarbox.delivery.items import EVERY_TEAM
from pillarbox.kernel.postgres.database import Source

EVERYWHERE = ""
"""`paused.destination` of what is paused for all destinations."""

# Across teams: the operator's scopes; there are few.
LIST = """
    SELECT team_id, destination, reason, paused_at FROM paused ORDER BY paused_at, team_id, destination
"""

PAUSE = """
    INSERT INTO paused AS p (team_id, destination, reason, paused_at)
    VALUES ($1, $2, $3, $4)
    ON CONFLICT (team_id, destination) DO UPDATE SET reason = coalesce(excluded.reason, p.reason)
    RETURNING paused_at = $4 AS is_new
"""

RESUME = """
    DELETE FROM paused WHERE team_id = $1 AND destination = $2
"""

RESUME_ALL = """
    DELETE FROM paused
"""


class PauseScope(NamedTuple):
    """What is meant: one team or every team, one destination or everywhere."""

    team_id: UUID = EVERY_TEAM
    destination: str = EVERYWHERE

    def holds(self, other: PauseScope) -> bool:
        """Whether all of `other` is in this scope."""
        return self.team_id in (EVERY_TEAM, other.team_id) and self.destination in (
            EVERYWHERE,
            other.destination,
        )


class PausedScope(NamedTuple):
    """A scope that is paused, with the operator's words if there are any."""

    scope: PauseScope
    reason: str | None
    since: datetime


class Pauses:
    """What is paused, as this process knew it at most a second ago."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool
        self._scopes: frozenset[tuple[UUID, str]] = frozenset()
        self.news = asyncio.Event()
        """Set where the scopes should be read again."""

    async def refresh(self) -> None:
        """Read the scopes again; called once a second and with every notification."""
        self._scopes = frozenset(paused.scope for paused in await listed(self._pool))

    def cover(self, team_id: UUID, destination: str) -> bool:
        """Whether this mail is held back."""
        scopes = self._scopes
        return bool(scopes) and (
            (team_id, destination) in scopes
            or (team_id, EVERYWHERE) in scopes
            or (EVERY_TEAM, destination) in scopes
            or (EVERY_TEAM, EVERYWHERE) in scopes
        )

    def cover_any(self, team_id: UUID, destinations: Iterable[str]) -> bool:
        """Whether any of this team's mail for these destinations is held back."""
        return bool(self._scopes) and any(self.cover(team_id, name) for name in destinations)


async def listed(source: Source) -> list[PausedScope]:
    """All that is paused, oldest first."""
    return [
        PausedScope(PauseScope(row["team_id"], row["destination"]), row["reason"], row["paused_at"])
        for row in await source.fetch(LIST)
    ]


async def pause(source: Source, scope: PauseScope, reason: str | None, now: datetime) -> bool:
    """Hold back what is in the scope; False when it was paused before (a new reason replaces the old)."""
    is_new: bool = await source.fetchval(PAUSE, scope.team_id, scope.destination, reason, now)
    return is_new


async def resume(source: Source, scope: PauseScope) -> bool:
    """Lift the pause of exactly this scope; False when there is none."""
    status: str = await source.execute(RESUME, scope.team_id, scope.destination)
    return status.endswith(" 1")


async def resume_all(source: Source) -> int:
    """Lift every pause; returns how many there were."""
    status: str = await source.execute(RESUME_ALL)
    return int(status.rsplit(" ", 1)[-1])


def enclosing_pause(paused: Collection[PausedScope], scope: PauseScope) -> PausedScope | None:
    """The oldest pause that holds all of this scope."""
    return next((found for found in paused if found.scope.holds(scope)), None)
