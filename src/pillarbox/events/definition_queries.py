"""SQL of definitions of events."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.wire.paging import NO_PAGE, Page

INSERT: Final = """
    INSERT INTO event_definitions (team_id, id, name, schema, created_at, updated_at)
    VALUES ($1, $2, $3, $4::text::json, $5, $5)
"""

# The definitions of a page, the one with the id `$5`, or the one of the name `$6`.
READ: Final = """
    SELECT id, name, schema, created_at, updated_at FROM (
        (SELECT * FROM event_definitions WHERE team_id = $1 AND id < $2 ORDER BY id DESC LIMIT $4)
        UNION ALL
        (SELECT * FROM event_definitions WHERE team_id = $1 AND id > $3 ORDER BY id LIMIT $4)
        UNION ALL
        (SELECT * FROM event_definitions WHERE team_id = $1 AND id = $5)
        UNION ALL
        (SELECT * FROM event_definitions WHERE team_id = $1 AND name = $6)
    ) AS page
"""

CHANGE: Final = """
    UPDATE event_definitions
       SET schema = $3::text::json, updated_at = greatest(updated_at, $4)
     WHERE team_id = $1 AND id = $2
"""

DELETE: Final = """
    DELETE FROM event_definitions WHERE team_id = $1 AND id = $2
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class EventDefinitionRow:
    """A team's definition of an event; `schema` is JSON."""

    id: UUID
    name: str
    schema: str | None
    created_at: datetime
    updated_at: datetime


async def insert(db: TeamDb, definition_id: UUID, name: str, schema: str | None, now: datetime) -> None:
    await db.run(INSERT, definition_id, name, schema, now)


async def by_id(db: TeamDb, definition_id: UUID) -> EventDefinitionRow | None:
    return await db.one(EventDefinitionRow, READ, *NO_PAGE, definition_id, None)


async def by_name(db: TeamDb, name: str) -> EventDefinitionRow | None:
    return await db.one(EventDefinitionRow, READ, *NO_PAGE, None, name)


async def page(db: TeamDb, page: Page) -> list[EventDefinitionRow]:
    return await db.all(EventDefinitionRow, READ, *page.args, None, None)


async def change(db: TeamDb, definition_id: UUID, schema: str | None, now: datetime) -> bool:
    return await db.run(CHANGE, definition_id, schema, now) > 0


async def delete(db: TeamDb, definition_id: UUID) -> bool:
    return await db.run(DELETE, definition_id) > 0
