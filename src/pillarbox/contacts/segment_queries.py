"""SQL of the segments that a contact is in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.wire.paging import Page

# There is no foreign key (docs/decisions/0060): segments are held until the members are written.
LIVE = """
    SELECT id, conditions IS NOT NULL AS has_conditions
      FROM segments
     WHERE team_id = $1 AND id = ANY ($2::uuid[])
"""

ADD = """
    INSERT INTO segment_members (team_id, segment_id, contact_id, added_at)
    SELECT $1, segment_id, $2, $4 FROM unnest($3::uuid[]) AS k (segment_id) ORDER BY segment_id
    ON CONFLICT DO NOTHING
"""

REMOVE = """
    DELETE FROM segment_members WHERE team_id = $1 AND contact_id = $2 AND segment_id = $3
"""

REMOVE_ALL = """
    DELETE FROM segment_members WHERE team_id = $1 AND contact_id = $2
"""

# A segment that was deleted keeps its members for a while (docs/decisions/0060).
IDS = """
    SELECT m.segment_id
      FROM segment_members m
      JOIN segments s ON s.team_id = m.team_id AND s.id = m.segment_id
     WHERE m.team_id = $1 AND m.contact_id = $2
     ORDER BY m.added_at, m.segment_id
"""

EXISTS = """
    SELECT EXISTS (SELECT FROM segments WHERE team_id = $1 AND id = $2)
"""

CONDITIONS = """
    SELECT conditions::text FROM segments WHERE team_id = $1 AND id = $2
"""

ALL_CONDITIONS = """
    SELECT id, name, created_at, conditions::text AS conditions
      FROM segments
     WHERE team_id = $1 AND conditions IS NOT NULL
     ORDER BY id DESC
"""

PAGE = """
    SELECT id, name, created_at FROM (
        (SELECT s.id, s.name, s.created_at
           FROM segment_members m
           JOIN segments s ON s.team_id = m.team_id AND s.id = m.segment_id
          WHERE m.team_id = $1 AND m.contact_id = $5 AND s.id < $2 ORDER BY s.id DESC LIMIT $4)
        UNION ALL
        (SELECT s.id, s.name, s.created_at
           FROM segment_members m
           JOIN segments s ON s.team_id = m.team_id AND s.id = m.segment_id
          WHERE m.team_id = $1 AND m.contact_id = $5 AND s.id > $3 ORDER BY s.id LIMIT $4)
    ) AS page
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentOfContact:
    id: UUID
    name: str
    created_at: datetime


class HeldSegment(NamedTuple):
    """A segment, and whether conditions say who is in it."""

    id: UUID
    has_conditions: bool


class SegmentConditions(NamedTuple):
    """A segment that is defined by conditions, which are JSON."""

    id: UUID
    name: str
    created_at: datetime
    conditions: str


async def hold(db: TeamDb, segment_ids: Sequence[UUID]) -> list[HeldSegment]:
    """Return those of these segments that the team has; none is deleted until the transaction ends."""
    await lock_members(db)
    return await db.all(HeldSegment, LIVE, segment_ids)


async def add(db: TeamDb, contact_id: UUID, segment_ids: Sequence[UUID], now: datetime) -> int:
    """Add a contact that is locked to segments that are; returns how many were new to it."""
    return await db.run(ADD, contact_id, segment_ids, now)


async def remove(db: TeamDb, contact_id: UUID, segment_id: UUID) -> bool:
    return await db.run(REMOVE, contact_id, segment_id) == 1


async def remove_all(db: TeamDb, contact_id: UUID) -> None:
    await db.run(REMOVE_ALL, contact_id)


async def ids(db: TeamDb, contact_id: UUID) -> list[UUID]:
    """Return the segments of a contact, in the order in which it was added to them."""
    return list(await db.values(IDS, contact_id))


async def exists(db: TeamDb, segment_id: UUID) -> bool:
    found: bool = await db.value(EXISTS, segment_id)
    return found


async def conditions_of(db: TeamDb, segment_id: UUID) -> str | None:
    """Return the conditions of a segment as JSON; None where it has none, or is not there."""
    found: str | None = await db.value(CONDITIONS, segment_id)
    return found


async def all_conditions(db: TeamDb) -> list[SegmentConditions]:
    """Return the segments of the team that are defined by conditions, the newest first."""
    return await db.all(SegmentConditions, ALL_CONDITIONS)


async def page(db: TeamDb, contact_id: UUID, page: Page) -> list[SegmentOfContact]:
    return await db.all(SegmentOfContact, PAGE, *page.args, contact_id)


async def lock_members(db: TeamDb) -> None:
    """Keep the team's segments from being deleted until the transaction ends (docs/decisions/0060). This is a
    statement of its own: one that waited would still see what was there before."""
    await db.run(
        """
        SELECT pg_advisory_xact_lock_shared(hashtextextended('segment members of ' || team_id, 0))
          FROM (SELECT $1::uuid AS team_id) AS held
        """
    )


async def lock_members_alone(db: TeamDb) -> None:
    """Wait until nobody writes members of the team's segments; nobody begins until the transaction ends."""
    await db.run(
        """
        SELECT pg_advisory_xact_lock(hashtextextended('segment members of ' || team_id, 0))
          FROM (SELECT $1::uuid AS team_id) AS held
        """
    )
