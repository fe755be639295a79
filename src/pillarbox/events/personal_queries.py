"""SQL of what events have of a person. The table is short: an event is gone once it is distributed."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from pillarbox.kernel.postgres.database import TeamDb

REMOVE = """
    DELETE FROM events WHERE team_id = $1 AND (address = $2 OR contact_id = $3)
"""

ERASE = """
    UPDATE events
       SET payload = regexp_replace(payload::text, $3, $4, 'gi')::json
     WHERE team_id = $1 AND lower(payload::text) LIKE '%' || $2 || '%' AND lower(payload::text) ~ $3
"""

OF_PERSON = """
    SELECT name, at, payload
      FROM events
     WHERE team_id = $1 AND (address = $2 OR contact_id = $3)
     ORDER BY id
"""


class EventOfPerson(NamedTuple):
    """An event; `payload` is JSON text."""

    name: str
    at: datetime
    payload: str


async def remove(db: TeamDb, address: str, contact_id: UUID | None) -> int:
    """Remove the events of a person; returns how many."""
    return await db.run(REMOVE, address, contact_id)


async def erase(db: TeamDb, found_by: tuple[str, str], stands_for: str) -> int:
    """Replace the address in payloads; returns in how many."""
    return await db.run(ERASE, *found_by, stands_for)


async def of_person(db: TeamDb, address: str, contact_id: UUID | None) -> list[EventOfPerson]:
    """Return the events of a person, the oldest first."""
    return await db.all(EventOfPerson, OF_PERSON, address, contact_id)
