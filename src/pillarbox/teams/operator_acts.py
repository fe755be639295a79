"""Acts of the operator on a team: block it, let it work again, set its limits. Each act is recorded.

The commands of `pillarbox teams` and the screen of a team call the same functions.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final

import asyncpg

from pillarbox.kernel.postgres.database import transaction
from pillarbox.people import audit
from pillarbox.people.audit import Act, Actor
from pillarbox.teams import bootstrap
from pillarbox.teams.bootstrap import TeamStatus
from pillarbox.teams.team import Team

ACTS: Final = {TeamStatus.BLOCKED: Act.TEAM_BLOCKED, TeamStatus.ACTIVE: Act.TEAM_UNBLOCKED}


async def set_status(pool: asyncpg.Pool, team: Team, status: TeamStatus, actor: Actor, now: datetime) -> bool:
    """Block or unblock a team; a team that is there already stays there. False where it is disabled."""
    if team.status not in (TeamStatus.ACTIVE.value, TeamStatus.BLOCKED.value):
        return False
    async with transaction(pool) as conn:
        await bootstrap.set_status(conn, team.id, status)
        if team.status != status.value:
            await audit.record(conn, now, ACTS[status], team_id=team.id, actor=actor, target=team.name)
    return True


async def set_limits(
    pool: asyncpg.Pool, team: Team, limits: Mapping[str, int | None], actor: Actor, now: datetime
) -> None:
    """Give the team these limits of its own; None takes one away. Others stay as they are."""
    async with transaction(pool) as conn:
        await bootstrap.set_limits(conn, team.id, limits)
        await audit.record(
            conn, now, Act.TEAM_LIMITS_SET, team_id=team.id, actor=actor, target=team.name, details=limits
        )
