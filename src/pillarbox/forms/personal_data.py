"""Personal data in forms: sign-ups of the address, with what was typed and the consents."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime
from typing import Any, Final

import msgspec

from pillarbox.forms import sign_up_queries as queries
from pillarbox.kernel.personal_data import DataSubject, ErasedRows, PersonalData
from pillarbox.kernel.postgres.database import TeamDb


async def erase(db: TeamDb, person: DataSubject, _: str, __: datetime) -> ErasedRows:
    """Remove the sign-ups of the address; a link that waits leads nowhere from then on."""
    return ErasedRows(None, await queries.erase(db, person.address))


async def read(db: TeamDb, person: DataSubject) -> AsyncIterator[dict[str, Any]]:
    """Yield the sign-ups of the address, the newest first."""
    for row in await queries.of_address(db, person.address):
        yield {
            "id": row.id,
            "form_id": row.form_id,
            "email": row.email,
            "content": msgspec.json.decode(row.content),
            "consent_text": row.consent_text,
            "requested_at": row.requested_at,
            "requested_from": row.client,
            "confirmed_at": row.confirmed_at,
            "confirmed_from": row.confirmed_client,
        }


PERSONAL_DATA: Final = [PersonalData(name="form_sign_ups", order=12, eraser=lambda _: erase, read=read)]
