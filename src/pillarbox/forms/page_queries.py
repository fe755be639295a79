"""SQL of what pages of forms show of the team."""

from __future__ import annotations

from pillarbox.kernel.postgres.database import TeamDb


async def team_name(db: TeamDb) -> str:
    """Return the name of the team."""
    found: str = await db.value(
        "SELECT name FROM (SELECT $1::uuid AS team_id) AS asked JOIN teams t ON t.id = asked.team_id"
    )
    return found
