"""Personal data in webhooks: bodies of events, and what endpoints answered.

The data of an event that names the person goes once no delivery of it waits: who is told of an erasure has
to be
told first. The line of each delivery stays, so that nothing seems to be lost.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from pillarbox.kernel.personal_data import BATCH, ERASED_ADDRESS, DataSubject, ErasedRows, PersonalData, id_at
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.webhooks.personal import personal_queries as queries


async def erase_events(db: TeamDb, person: DataSubject, place: str, _: datetime) -> ErasedRows:
    """Empty the next events that name the person."""
    walked = await queries.erase_events(db, person.found_by, id_at(place), BATCH)
    return walked.step._replace(waiting=walked.waiting)


async def erase_outcomes(db: TeamDb, person: DataSubject, place: str, _: datetime) -> ErasedRows:
    """Erase the person in what the next deliveries that ended without an attempt keep."""
    return (await queries.erase_outcomes(db, person, ERASED_ADDRESS, _ids(place), BATCH)).step


async def erase_attempts(db: TeamDb, person: DataSubject, place: str, _: datetime) -> ErasedRows:
    """Erase the person in the answers of the next attempts."""
    return (await queries.erase_attempts(db, person, ERASED_ADDRESS, _ids(place, 3), BATCH)).step


def _ids(place: str, count: int = 2) -> list[str]:
    """Return the ids of a place, the least ones at the beginning."""
    return place.split(",") if place else [str(id_at(""))] * count


PERSONAL_DATA: Final = [
    PersonalData(name="webhook_events", order=80, eraser=lambda _: erase_events),
    PersonalData(name="webhook_outcomes", order=81, eraser=lambda _: erase_outcomes),
    PersonalData(name="webhook_attempts", order=82, eraser=lambda _: erase_attempts),
]
