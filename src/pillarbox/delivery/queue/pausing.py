"""Pausing: mail that the operator holds back for a while, by team, by destination, or all of it.

A scope is a row of `paused`. What is in it is not claimed (`queries.CLAIM` checks it) and not taken over from
an accept. Processes that have it in memory give it back when its turn comes; an attempt that is on the wire
ends as it ends. Mail is still accepted. The delivery window goes on meanwhile; whatever is left of it, an
item gets at least one attempt when its scope is resumed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable
from uuid import UUID

import asyncpg

from pillarbox.delivery.items import EVERY_TEAM
from pillarbox.delivery.queue.pausing_queries import EVERYWHERE, PausedScope, PauseScope, listed


class Pauses:
    """The paused scopes, as this process knew them at most a second ago."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool
        self._scopes: frozenset[tuple[UUID, str]] = frozenset()
        self.news = asyncio.Event()
        """Set where the scopes should be read again."""

    async def refresh(self) -> None:
        """Read the scopes again; called once a second and with every notification."""
        self._scopes = frozenset(paused.scope for paused in await listed(self._pool))

    @property
    def hold_any(self) -> bool:
        """Whether any scope is paused."""
        return bool(self._scopes)

    def cover(self, team_id: UUID, destination: str) -> bool:
        """Return whether this mail is held back."""
        scopes = self._scopes
        return bool(scopes) and (
            (team_id, destination) in scopes
            or (team_id, EVERYWHERE) in scopes
            or (EVERY_TEAM, destination) in scopes
            or (EVERY_TEAM, EVERYWHERE) in scopes
        )

    def cover_any(self, team_id: UUID, destinations: Iterable[str]) -> bool:
        """Return whether any of this team's mail for these destinations is held back."""
        return bool(self._scopes) and any(self.cover(team_id, name) for name in destinations)


def enclosing_pause(paused: Collection[PausedScope], scope: PauseScope) -> PausedScope | None:
    """Return the oldest pause that holds all of this scope."""
    return next((found for found in paused if found.scope.holds(scope)), None)
