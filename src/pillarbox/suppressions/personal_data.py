"""Personal data in the suppression list: the entry of the address. The hash of an erasure takes its
place."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime
from typing import Any, Final

from pillarbox.kernel.personal_data import DataSubject, ErasedRows, PersonalData
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.suppressions import queries


async def erase(db: TeamDb, person: DataSubject, _: str, __: datetime) -> ErasedRows:
    """Remove the entry of the address; nobody is told, for mail to it is skipped as before."""
    return ErasedRows(None, len(await queries.remove_by_address(db, [person.address])))


async def read(db: TeamDb, person: DataSubject) -> AsyncIterator[dict[str, Any]]:
    """Yield the entry of the address, if it is on the list."""
    entry = await queries.by_address(db, person.address)
    if entry is not None:
        yield {
            "id": entry.id,
            "email": entry.shown,
            "origin": entry.origin,
            "source_id": entry.source_id,
            "created_at": entry.created_at,
        }


PERSONAL_DATA: Final = [PersonalData(name="suppressions", order=70, eraser=lambda _: erase, read=read)]
