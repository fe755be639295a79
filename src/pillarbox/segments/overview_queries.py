"""SQL of what the operator sees of segments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from pillarbox.kernel.postgres.database import TeamDb


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentOverview:
    """A segment, with how many members it has; None where conditions say who is in it."""

    id: UUID
    name: str
    members: int | None
    created_at: datetime


async def every(db: TeamDb) -> list[SegmentOverview]:
    """Return the segments of a team, the newest first."""
    return await db.all(
        SegmentOverview,
        """
        SELECT s.id, s.name, s.created_at,
               CASE WHEN s.conditions IS NULL THEN coalesce(m.members, 0) END AS members
          FROM segments s
          LEFT JOIN (SELECT segment_id, count(*) AS members
                       FROM segment_members
                      WHERE team_id = $1
                      GROUP BY segment_id) AS m ON m.segment_id = s.id
         WHERE s.team_id = $1
         ORDER BY s.id DESC
        """,
    )


class MemberCount(NamedTuple):
    segment_id: UUID
    members: int


async def member_counts(db: TeamDb, segment_ids: Sequence[UUID]) -> list[MemberCount]:
    """Return how many members each of these segments has, those without any left out."""
    return await db.all(
        MemberCount,
        """
        SELECT segment_id, count(*) AS members
          FROM segment_members
         WHERE team_id = $1 AND segment_id = ANY ($2::uuid[])
         GROUP BY segment_id
        """,
        segment_ids,
    )
