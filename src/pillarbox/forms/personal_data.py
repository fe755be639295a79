"""The sign-ups of one address: for the page, the export and the erasure of a person."""

from __future__ import annotations

from typing import Any

from pillarbox.forms import sign_up_queries
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.wire.instants import iso_style


async def sign_ups_of(db: TeamDb, address: str) -> list[dict[str, Any]]:
    """Return the sign-ups of a compared address with their consents, the newest first."""
    return [
        {
            "id": str(row.id),
            "form_id": str(row.form_id),
            "email": row.email,
            "content": row.content,
            "consent_text": row.consent_text,
            "requested_at": iso_style(row.requested_at),
            "requested_from": row.client,
            "confirmed_at": None if row.confirmed_at is None else iso_style(row.confirmed_at),
            "confirmed_from": row.confirmed_client,
        }
        for row in await sign_up_queries.of_address(db, address)
    ]


async def erase(db: TeamDb, address: str) -> int:
    """Remove all that forms hold of a compared address; return how many sign-ups there were."""
    return await sign_up_queries.erase(db, address)
