"""SQL of the segments and of their members."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from pillarbox.contacts import segment_locks
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.wire.paging import NO_PAGE, Page

JOB_REMOVE: Final = "segment.remove"


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """A segment of a team. `conditions` is JSON, None where its members are added by hand."""

    id: UUID
    name: str
    created_at: datetime
    conditions: str | None = None


async def insert(db: TeamDb, segment: Segment) -> None:
    await db.run(
        """
        INSERT INTO segments (team_id, id, name, created_at, conditions)
        VALUES ($1, $2, $3, $4, $5::text::json)
        """,
        segment.id,
        segment.name,
        segment.created_at,
        segment.conditions,
    )


# The segments of a page, or the one with the id `$5`.
READ: Final = """
    SELECT id, name, created_at, conditions::text AS conditions FROM (
        (SELECT * FROM segments WHERE team_id = $1 AND id < $2 ORDER BY id DESC LIMIT $4)
        UNION ALL
        (SELECT * FROM segments WHERE team_id = $1 AND id > $3 ORDER BY id LIMIT $4)
        UNION ALL
        (SELECT * FROM segments WHERE team_id = $1 AND id = $5)
    ) AS page
"""


async def page(db: TeamDb, page: Page) -> list[Segment]:
    return await db.all(Segment, READ, *page.args, None)


async def get(db: TeamDb, segment_id: UUID) -> Segment | None:
    return await db.one(Segment, READ, *NO_PAGE, segment_id)


async def change(db: TeamDb, segment_id: UUID, name: str | None, conditions: str | None) -> bool:
    """Change what is given. Conditions change where the segment has some; False where there is none such."""
    return bool(
        await db.run(
            """
            UPDATE segments
               SET name = coalesce($3, name), conditions = coalesce($4::text::json, conditions)
             WHERE team_id = $1 AND id = $2 AND ($4::text IS NULL OR conditions IS NOT NULL)
            """,
            segment_id,
            name,
            conditions,
        )
    )


async def count_with_conditions(db: TeamDb) -> int:
    found: int = await db.value("SELECT count(*) FROM segments WHERE team_id = $1 AND conditions IS NOT NULL")
    return found


async def delete(db: TeamDb, segment_id: UUID) -> bool:
    """Wait for whoever is writing members, and remove the segment; False where there is none."""
    await segment_locks.hold_alone(db)
    return await db.run("DELETE FROM segments WHERE team_id = $1 AND id = $2", segment_id) == 1


async def present(db: TeamDb, segment_ids: Sequence[UUID]) -> Sequence[UUID]:
    return await db.values(
        "SELECT id FROM segments WHERE team_id = $1 AND id = ANY ($2::uuid[])", segment_ids
    )


async def with_conditions(db: TeamDb, segment_ids: Sequence[UUID]) -> Sequence[UUID]:
    return await db.values(
        "SELECT id FROM segments WHERE team_id = $1 AND id = ANY ($2::uuid[]) AND conditions IS NOT NULL",
        segment_ids,
    )


async def is_member(db: TeamDb, segment_id: UUID, contact_id: UUID) -> bool:
    found = await db.value(
        "SELECT true FROM segment_members WHERE team_id = $1 AND segment_id = $2 AND contact_id = $3",
        segment_id,
        contact_id,
    )
    return found is True


async def remove_members(db: TeamDb, segment_id: UUID, limit: int) -> int:
    """Remove up to `limit` members of the segment; return how many."""
    return await db.run(
        """
        WITH next AS MATERIALIZED (
            SELECT contact_id
              FROM segment_members
             WHERE team_id = $1 AND segment_id = $2
             ORDER BY contact_id
             LIMIT $3
        )
        DELETE FROM segment_members m
         USING next
         WHERE m.team_id = $1 AND m.segment_id = $2 AND m.contact_id = next.contact_id
        """,
        segment_id,
        limit,
    )
