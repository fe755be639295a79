"""SQL of contact properties: the definitions of one team."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from msgspec import Raw

from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.wire.paging import NO_PAGE, Page

# The properties of a page, the one with the id `$5`, or those with the keys `$6`.
READ = """
    SELECT id, number, key, type, fallback_value, created_at FROM (
        (SELECT * FROM contact_properties
          WHERE team_id = $1 AND id < $2 AND deleted_at IS NULL ORDER BY id DESC LIMIT $4)
        UNION ALL
        (SELECT * FROM contact_properties
          WHERE team_id = $1 AND id > $3 AND deleted_at IS NULL ORDER BY id LIMIT $4)
        UNION ALL
        (SELECT * FROM contact_properties
          WHERE team_id = $1 AND id = $5 AND deleted_at IS NULL)
        UNION ALL
        (SELECT * FROM contact_properties
          WHERE team_id = $1 AND key = ANY ($6::text[]) AND deleted_at IS NULL)
    ) AS page
"""

LIVING = """
    SELECT number FROM contact_properties
     WHERE team_id = $1 AND number = ANY ($2::integer[]) AND deleted_at IS NULL
"""

INSERT = """
    INSERT INTO contact_properties (team_id, id, number, key, type, fallback_value, created_at)
    SELECT $1, $2, coalesce(max(number), 0) + 1, $3, $4, $5::text::jsonb, $6
      FROM contact_properties
     WHERE team_id = $1
"""

COUNT = """
    SELECT count(*) FROM contact_properties WHERE team_id = $1 AND deleted_at IS NULL
"""

CHANGE = """
    UPDATE contact_properties
       SET fallback_value = $3::text::jsonb
     WHERE team_id = $1 AND id = $2 AND deleted_at IS NULL
"""

HIDE = """
    UPDATE contact_properties SET deleted_at = $3 WHERE team_id = $1 AND id = $2 AND deleted_at IS NULL
"""

HIDDEN = """
    SELECT id, number FROM contact_properties WHERE team_id = $1 AND deleted_at IS NOT NULL
"""

REMOVE = """
    DELETE FROM contact_properties WHERE team_id = $1 AND id = ANY ($2::uuid[]) AND deleted_at IS NOT NULL
"""

# The lock is taken by a statement of its own: one that waited would still see what was there before.
HOLD = """
    SELECT pg_advisory_xact_lock_shared(hashtextextended('contact properties of ' || team_id, 0))
      FROM (SELECT $1::uuid AS team_id) AS held
"""

HOLD_ALONE = """
    SELECT pg_advisory_xact_lock(hashtextextended('contact properties of ' || team_id, 0))
      FROM (SELECT $1::uuid AS team_id) AS held
"""

HOLD_NUMBERS = """
    SELECT pg_advisory_xact_lock(hashtextextended('numbers of contact properties of ' || team_id, 0))
      FROM (SELECT $1::uuid AS team_id) AS held
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class PropertyDefinition:
    """The definition of a property. Values are kept under its `number`; `fallback_value` is JSON."""

    id: UUID
    number: int
    key: str
    type: str
    fallback_value: str | None
    created_at: datetime

    @property
    def fallback(self) -> Raw:
        """The fallback as answers show it."""
        return Raw((self.fallback_value or "null").encode())


class DeletedDefinition(NamedTuple):
    """A definition that was deleted, and the number under which values may still be kept."""

    id: UUID
    number: int


async def page(db: TeamDb, page: Page) -> list[PropertyDefinition]:
    return await db.all(PropertyDefinition, READ, *page.args, None, None)


async def one(db: TeamDb, property_id: UUID) -> PropertyDefinition | None:
    return await db.one(PropertyDefinition, READ, *NO_PAGE, property_id, None)


async def named(db: TeamDb, keys: Sequence[str]) -> list[PropertyDefinition]:
    """Return the definitions of those of these keys that have one."""
    return await db.all(PropertyDefinition, READ, *NO_PAGE, None, keys)


async def hold(db: TeamDb) -> None:
    """Keep the team's definitions from being deleted until the transaction ends."""
    await db.run(HOLD)


async def hold_alone(db: TeamDb) -> None:
    """Wait until nobody writes values of the team's properties; nobody begins until the transaction ends."""
    await db.run(HOLD_ALONE)


async def hold_numbers(db: TeamDb) -> None:
    """Keep others from defining a property of the team until the transaction ends."""
    await db.run(HOLD_NUMBERS)


async def count(db: TeamDb) -> int:
    found: int = await db.value(COUNT)
    return found


async def insert(
    db: TeamDb, property_id: UUID, key: str, kind: str, fallback: str | None, now: datetime
) -> None:
    await db.run(INSERT, property_id, key, kind, fallback, now)


async def change(db: TeamDb, property_id: UUID, fallback: str | None) -> bool:
    """Change the fallback; False where the team has no such property."""
    return await db.run(CHANGE, property_id, fallback) == 1


async def hide(db: TeamDb, property_id: UUID, now: datetime) -> bool:
    """Mark a definition deleted; False where the team has none of that id."""
    return await db.run(HIDE, property_id, now) == 1


async def hidden(db: TeamDb) -> list[DeletedDefinition]:
    """Return the definitions that were deleted and are still there."""
    return await db.all(DeletedDefinition, HIDDEN)


async def remove(db: TeamDb, property_ids: Sequence[UUID]) -> None:
    """Let go of deleted definitions, and of their numbers."""
    await db.run(REMOVE, property_ids)


async def living(db: TeamDb, numbers: Sequence[int]) -> list[int]:
    """Return those of these numbers whose definitions are not deleted."""
    return list(await db.values(LIVING, numbers))
