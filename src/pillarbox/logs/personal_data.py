"""Personal data in the log of requests: requests that named the address. Their bodies go, the line
stays."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime
from typing import Any, Final

from pillarbox.kernel.personal_data import (
    BATCH,
    ERASED_ADDRESS,
    DataSubject,
    ErasedRows,
    PersonalData,
    id_at,
)
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.logs import personal_queries as queries


async def erase(db: TeamDb, person: DataSubject, place: str, _: datetime) -> ErasedRows:
    """Empty the bodies of the next requests that name the person."""
    walked = await queries.erase(db, person.found_by, ERASED_ADDRESS, id_at(place), BATCH)
    return walked.step


async def read(db: TeamDb, person: DataSubject) -> AsyncIterator[dict[str, Any]]:
    """Yield the requests that named the person, the oldest first."""
    after = id_at("")
    while True:
        walked = await queries.walk(db, person.found_by, after, BATCH)
        for row in walked:
            if row.is_concerned:
                yield {
                    "created_at": row.created_at,
                    "method": row.method,
                    "endpoint": row.endpoint,
                    "response_status": row.response_status,
                }
        if len(walked) < BATCH:
            return
        after = walked[-1].id


PERSONAL_DATA: Final = [PersonalData(name="requests", order=60, eraser=lambda _: erase, read=read)]
