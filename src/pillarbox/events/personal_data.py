"""Personal data in events: those that wait, and those that failed. One that was distributed is gone."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime
from typing import Any, Final

import msgspec

from pillarbox.events import personal_queries as queries
from pillarbox.kernel.personal_data import ERASED_ADDRESS, DataSubject, ErasedRows, PersonalData
from pillarbox.kernel.postgres.database import TeamDb


async def erase(db: TeamDb, person: DataSubject, _: str, __: datetime) -> ErasedRows:
    """Remove the person's events, and replace the address in those of others."""
    removed = await queries.remove(db, person.address, person.contact_id)
    return ErasedRows(None, removed + await queries.erase(db, person.found_by, ERASED_ADDRESS))


async def read(db: TeamDb, person: DataSubject) -> AsyncIterator[dict[str, Any]]:
    """Yield the events of the person that wait or failed."""
    for event in await queries.of_person(db, person.address, person.contact_id):
        yield {"name": event.name, "at": event.at, "payload": msgspec.json.decode(event.payload)}


PERSONAL_DATA: Final = [PersonalData(name="events", order=15, eraser=lambda _: erase, read=read)]
