"""Personal data in automations: runs of its contact, with the payloads that they were started with."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime
from typing import Any, Final

import msgspec

from pillarbox.automations import personal_queries as queries
from pillarbox.kernel.personal_data import BATCH, ERASED_ADDRESS, DataSubject, ErasedRows, PersonalData, id_at
from pillarbox.kernel.postgres.database import TeamDb


async def erase_runs(db: TeamDb, person: DataSubject, place: str, _: datetime) -> ErasedRows:
    """Empty the next runs of the person's contact, and replace the address in those of others."""
    args = (person.found_by, ERASED_ADDRESS, person.contact_id, id_at(place), BATCH)
    return (await queries.erase_runs(db, *args)).step


async def erase_steps(db: TeamDb, person: DataSubject, place: str, _: datetime) -> ErasedRows:
    """Replace the address in the results of the next runs' steps."""
    return (await queries.erase_steps(db, person.found_by, ERASED_ADDRESS, id_at(place), BATCH)).step


async def read(db: TeamDb, person: DataSubject) -> AsyncIterator[dict[str, Any]]:
    """Yield the runs of the person's contact, the oldest first."""
    after = id_at("")
    while person.contact_id is not None:
        rows = await queries.of_contact(db, person.contact_id, after, BATCH)
        for row in rows:
            yield {
                "id": row.id,
                "automation": row.name,
                "event": row.event_name,
                "payload": msgspec.json.decode(row.payload),
                "status": row.status,
                "created_at": row.created_at,
                "completed_at": row.completed_at,
            }
        if len(rows) < BATCH:
            return
        after = rows[-1].id


PERSONAL_DATA: Final = [
    PersonalData(name="automation_runs", order=20, eraser=lambda _: erase_runs, read=read),
    PersonalData(name="automation_steps", order=21, eraser=lambda _: erase_steps),
]
