"""The origin of an email, and its custom header fields."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

import msgspec

from pillarbox.emails.insights import queries
from pillarbox.kernel.postgres.database import TeamDb

_headers = msgspec.json.Decoder(list[tuple[str, str]]).decode


@dataclass(frozen=True, slots=True, kw_only=True)
class EmailOrigin:
    """The key, broadcast, template or inbox that an email was made by. `headers` are the custom ones."""

    key_id: UUID | None
    broadcast_id: UUID | None
    template_id: UUID | None
    inbox_id: UUID | None
    source: str
    headers: list[tuple[str, str]]


async def origin_of(db: TeamDb, email_id: UUID) -> EmailOrigin | None:
    """Return where the email comes from; None where the team has no such email."""
    row = await queries.origin(db, email_id)
    if row is None:
        return None
    headers = [] if row.headers is None else _headers(row.headers)
    return EmailOrigin(
        key_id=row.key_id,
        broadcast_id=row.broadcast_id,
        template_id=row.template_id,
        inbox_id=row.inbox_id,
        source=row.source,
        headers=headers,
    )
