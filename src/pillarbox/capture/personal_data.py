"""Personal data in captured mail: copies of mail that would have gone to the address. They are
removed."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from pillarbox.capture import personal_queries as queries
from pillarbox.kernel.personal_data import BATCH, DataSubject, ErasedRows, PersonalData, id_at, place_of
from pillarbox.kernel.postgres.database import TeamDb


async def erase(db: TeamDb, person: DataSubject, place: str, _: datetime) -> ErasedRows:
    """Remove the next captured mails that name the person."""
    walked = await queries.span(db, person.found_by, id_at(place), BATCH)
    gone = [mail.id for mail in walked if mail.is_concerned]
    blobs = await queries.remove(db, gone)
    return ErasedRows(place_of(walked[-1].id if walked else None, len(walked), BATCH), len(gone), blobs=blobs)


PERSONAL_DATA: Final = [PersonalData(name="captured", order=55, eraser=lambda _: erase)]
