"""SQL of definitions of events."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.wire.paging import Page

INSERT: Final = """
    INSERT INTO event_definitions (team_id, id, name, schema, created_at, updated_at)
    VALUES ($1, $2, $3, $4::text::json, $5, $5)
"""

BY_ID: Final = """
    SELECT id, name, schema, created_at, updated_at FROM event_definitions WHERE team_id = $1 AND id = $2
"""

BY_NAME: Final = """
    SELECT id, name, schema, created_at, updated_at FROM event_definitions WHERE team_id = $1 AND name = $2
"""

PAGE: Final = """
    SELECT id, name, schema, created_at, updated_at FROM (
        (SELECT id, name, schema, created_at, updated_at
           FROM event_definitions
          WHERE team_id = $1 AND id < $2 ORDER BY id DESC LIMIT $4)
        UNION ALL
        (SELECT id, name, schema, created_at, updated_at
           FROM event_definitions
          WHERE team_id = $1 AND id > $3 ORDER BY id LIMIT $4)
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
    return await db.one(EventDefinitionRow, BY_ID, definition_id)


async def by_name(db: TeamDb, name: str) -> EventDefinitionRow | None:
    return await db.one(EventDefinitionRow, BY_NAME, name)


async def page(db: TeamDb, page: Page) -> list[EventDefinitionRow]:
    return await db.all(EventDefinitionRow, PAGE, *page.args)


async def change(db: TeamDb, definition_id: UUID, schema: str | None, now: datetime) -> bool:
    return await db.run(CHANGE, definition_id, schema, now) > 0


async def delete(db: TeamDb, definition_id: UUID) -> bool:
    return await db.run(DELETE, definition_id) > 0
