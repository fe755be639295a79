"""SQL of the terms by which contacts are found."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

from pillarbox.kernel.postgres.database import Connection, Source, TeamDb

# Across teams: the first run begins with the contact that was changed longest ago.
BEGIN: Final = """
    INSERT INTO contact_terms_progress (id, kept_until)
    SELECT 1, coalesce(min(updated_at), $1) FROM contacts WHERE team_id IS NOT NULL
    ON CONFLICT (id) DO NOTHING
"""

HAS_BEGUN: Final = "SELECT EXISTS (SELECT FROM contact_terms_progress)"

PROGRESS: Final = "SELECT kept_until FROM contact_terms_progress WHERE id = 1 FOR UPDATE SKIP LOCKED"

ADVANCE: Final = "UPDATE contact_terms_progress SET kept_until = $1 WHERE id = 1"

# Across teams: contacts that were changed in a slice of time, by an index that knows which pages have some.
CHANGED: Final = """
    SELECT team_id, id, address, email, first_name, last_name
      FROM contacts
     WHERE updated_at >= $1 AND updated_at < $2
"""

# Across teams: a contact that is being deleted is locked, and passed by.
KEEP: Final = """
    WITH held AS MATERIALIZED (
        SELECT c.team_id, c.id, k.terms::integer[] AS terms
          FROM unnest($1::uuid[], $2::uuid[], $3::text[]) AS k (team_id, id, terms)
          JOIN contacts c ON c.team_id = k.team_id AND c.id = k.id
         ORDER BY c.team_id, c.id
           FOR KEY SHARE OF c SKIP LOCKED
    )
    INSERT INTO contact_terms AS t (team_id, contact_id, terms)
    SELECT team_id, id, terms FROM held ORDER BY team_id, id
        ON CONFLICT (team_id, contact_id) DO UPDATE
       SET terms = excluded.terms
     WHERE t.terms <> excluded.terms
"""

REMOVE: Final = """
    DELETE FROM contact_terms WHERE team_id = $1 AND contact_id = $2
"""


class ContactTexts(NamedTuple):
    """A contact that was changed, with all that it is found by."""

    team_id: UUID
    id: UUID
    address: str
    email: str | None
    first_name: str | None
    last_name: str | None


async def begin(source: Source, now: datetime) -> None:
    """Begin with the oldest change, unless it has begun."""
    if not await source.fetchval(HAS_BEGUN):
        await source.execute(BEGIN, now)


async def progress(conn: Connection) -> datetime | None:
    """Return up to when terms are kept, and hold that; None where another process does."""
    found: datetime | None = await conn.fetchval(PROGRESS)
    return found


async def advance(conn: Connection, until: datetime) -> None:
    await conn.execute(ADVANCE, until)


async def changed(
    conn: Connection, start: datetime, end: datetime, rows: int
) -> AsyncIterator[list[ContactTexts]]:
    """Yield the contacts that were changed in a slice of time, so many at once."""
    cursor = await conn.cursor(CHANGED, start, end)
    while block := await cursor.fetch(rows):
        yield [ContactTexts(*row) for row in block]


async def keep(source: Source, contacts: Sequence[ContactTexts], terms: Sequence[str]) -> int:
    """Store the terms of these contacts, as arrays in text; return of how many they are others now."""
    teams, ids = [one.team_id for one in contacts], [one.id for one in contacts]
    status: str = await source.execute(KEEP, teams, ids, terms)
    return int(status.rsplit(" ", 1)[-1])


async def remove(db: TeamDb, contact_id: UUID) -> None:
    """Remove the terms of a contact that is deleted."""
    await db.run(REMOVE, contact_id)
