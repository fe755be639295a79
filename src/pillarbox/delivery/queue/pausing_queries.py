"""SQL of what the operator holds back."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple
from uuid import UUID

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
    """A part of the mail: of one team or every team, to one destination or everywhere."""

    team_id: UUID = EVERY_TEAM
    destination: str = EVERYWHERE

    def holds(self, other: PauseScope) -> bool:
        """Return whether all of `other` is in this scope."""
        return self.team_id in (EVERY_TEAM, other.team_id) and self.destination in (
            EVERYWHERE,
            other.destination,
        )


class PausedScope(NamedTuple):
    """A scope that is paused, with the operator's words if there are any."""

    scope: PauseScope
    reason: str | None
    since: datetime


async def listed(source: Source) -> list[PausedScope]:
    """Return all that is paused, oldest first."""
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
