"""SQL of what conditions name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple
from uuid import UUID

from pillarbox.kernel.postgres.database import TeamDb

PRESENT: Final = """
    SELECT 'topic' AS kind, id, false AS has_conditions
      FROM topics
     WHERE team_id = $1 AND id = ANY ($2::uuid[]) AND deleted_at IS NULL
     UNION ALL
    SELECT 'segment', id, conditions IS NOT NULL FROM segments WHERE team_id = $1 AND id = ANY ($2::uuid[])
     UNION ALL
    SELECT 'broadcast', id, false FROM broadcasts WHERE team_id = $1 AND id = ANY ($2::uuid[])
"""


TOPIC_DEFAULTS: Final = """
    SELECT id, default_subscription
      FROM topics
     WHERE team_id = $1 AND id = ANY ($2::uuid[]) AND deleted_at IS NULL
"""

SEGMENTS: Final = """
    SELECT id FROM segments WHERE team_id = $1 AND id = ANY ($2::uuid[])
"""


class _PresentThing(NamedTuple):
    kind: str
    id: UUID
    has_conditions: bool


async def present(db: TeamDb, ids: Sequence[UUID]) -> dict[tuple[str, UUID], bool]:
    """Return those topics, segments and broadcasts of these ids that the team has, and whether each is a
    segment with conditions."""
    found = await db.all(_PresentThing, PRESENT, ids)
    return {(one.kind, one.id): one.has_conditions for one in found}


async def topic_defaults(db: TeamDb, ids: Sequence[UUID]) -> dict[UUID, str]:
    """Return the default subscription of those topics of these ids that the team has."""
    rows = await db.source.fetch(TOPIC_DEFAULTS, db.team_id, ids)
    return {row["id"]: row["default_subscription"] for row in rows}


async def segments(db: TeamDb, ids: Sequence[UUID]) -> set[UUID]:
    """Return those segments of these ids that the team has."""
    return set(await db.values(SEGMENTS, ids))
