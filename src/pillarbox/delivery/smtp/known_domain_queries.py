"""SQL of the domains that a team's mail has reached."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final
from uuid import UUID

from pillarbox.kernel.postgres.database import Connection, Source, TeamDb

# The first sight of an absence stays, as long as it is the same absence.
MISSED: Final = """
    UPDATE destinations
       SET missing_since = CASE WHEN missing_since > $4 THEN missing_since ELSE $3 END
     WHERE team_id = $1 AND destination = $2
    RETURNING missing_since
"""

MARK_REACHED: Final = """
    INSERT INTO destinations AS d (team_id, destination, reached_at)
    SELECT k.team_id, k.destination, $3
      FROM unnest($1::uuid[], $2::text[]) AS k (team_id, destination)
     ORDER BY k.team_id, k.destination
    ON CONFLICT (team_id, destination) DO UPDATE SET reached_at = excluded.reached_at, missing_since = NULL
"""

# Across teams: what has not been reached for long.
REMOVE_OLD: Final = """
    DELETE FROM destinations WHERE reached_at < $1
"""


async def missed(db: TeamDb, destination: str, now: datetime, since: datetime) -> datetime | None:
    """Note that the domain does not exist now; since when that is so, or None for one never reached."""
    found: datetime | None = await db.value(MISSED, destination, now, since)
    return found


async def mark_reached(conn: Connection, pairs: Sequence[tuple[UUID, str]], now: datetime) -> None:
    """Note that these teams' mail has reached these destinations."""
    await conn.execute(MARK_REACHED, *zip(*pairs, strict=True), now)


async def remove_old(conn: Source, before: datetime) -> int:
    """Remove what was last reached before; returns how many there were."""
    status: str = await conn.execute(REMOVE_OLD, before)
    return int(status.rsplit(" ", 1)[-1])
