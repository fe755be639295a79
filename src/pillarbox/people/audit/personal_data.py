"""Personal data in the log of acts: acts on the address, whose text gives way to the one of erased
people."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime
from typing import Any, Final

from pillarbox.kernel.personal_data import BATCH, ERASED_ADDRESS, DataSubject, ErasedRows, PersonalData, id_at
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.people.audit import personal_queries as queries


async def erase(db: TeamDb, person: DataSubject, place: str, _: datetime) -> ErasedRows:
    """Replace the address in the next acts on the person."""
    return (await queries.erase(db, person.found_by, ERASED_ADDRESS, id_at(place), BATCH)).step


async def read(db: TeamDb, person: DataSubject) -> AsyncIterator[dict[str, Any]]:
    """Yield the acts on the person, the oldest first."""
    after = id_at("")
    while True:
        walked = await queries.walk(db, person.found_by, after, BATCH)
        for row in walked:
            if row.is_concerned:
                yield {"at": row.at, "what": row.what}
        if len(walked) < BATCH:
            return
        after = walked[-1].id


PERSONAL_DATA: Final = [PersonalData(name="acts", order=90, eraser=lambda _: erase, read=read)]
