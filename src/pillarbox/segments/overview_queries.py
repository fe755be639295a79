"""SQL of what the operator sees of segments."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from pillarbox.kernel.postgres.database import TeamDb


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentOverview:
    """A segment, with how many members it has."""

    id: UUID
    name: str
    members: int
    created_at: datetime


async def every(db: TeamDb) -> list[SegmentOverview]:
    """Return the segments of a team, the newest first."""
    return await db.all(
        SegmentOverview,
        """
        SELECT s.id, s.name, coalesce(m.members, 0) AS members, s.created_at
          FROM segments s
          LEFT JOIN (SELECT segment_id, count(*) AS members
                       FROM segment_members
                      WHERE team_id = $1
                      GROUP BY segment_id) AS m ON m.segment_id = s.id
         WHERE s.team_id = $1
         ORDER BY s.id DESC
        """,
    )
