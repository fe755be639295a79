"""Received mail on the public page of a shared email (emails.md 5.3)."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable
from uuid import UUID

import msgspec

from pillarbox.emails.sharing.shared_page import MOST_PICTURE_BYTES, PICTURES, SharedEmail
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.receiving import queries
from pillarbox.receiving.queries import ReceivedEmailRow
from pillarbox.receiving.reading import EMPTY, MessageReader
from pillarbox.usage import counting

UNNAMED = "attachment"

_texts = msgspec.json.Decoder(list[str]).decode


class SharedReceivedMail:
    """Provides received mail to the page of shared emails."""

    def __init__(self, reading: MessageReader) -> None:
        self._reading = reading

    async def exists(self, db: TeamDb, email_id: UUID) -> bool:
        """Return whether there is such an email; 403 where its content is kept from the team."""
        if await queries.get(db, email_id) is None:
            return False
        await counting.refuse_above(db, email_id)
        return True

    async def shared(self, db: TeamDb, email_id: UUID, is_gone: Callable[[], bool]) -> SharedEmail | None:
        found = await queries.get(db, email_id)
        if found is None:
            return None
        async with self._reading.turn(db.team_id, found.size, is_gone):
            return await self._shown(db, found)

    async def _shown(self, db: TeamDb, row: ReceivedEmailRow) -> SharedEmail:
        source = await queries.source(db, row.id)
        parts = await queries.parts(db, row.id) if row.attachments else []
        parsed = EMPTY if source is None else await self._reading.parsed(source)
        pictures: dict[str, str] = {}
        if parsed.html and source is not None:
            images = await self._reading.pictures(parsed.html, source, parts, PICTURES, MOST_PICTURE_BYTES)
            for cid, (kind, octets) in images.items():
                pictures[cid] = f"data:{kind};base64,{b64encode(octets).decode('ascii')}"
        return SharedEmail(
            sender=row.sender,
            to=_texts(row.to_list),
            cc=_texts(row.cc_list or "[]"),
            date=row.created_at,
            subject=row.subject,
            html=parsed.html,
            text=parsed.text,
            attachments=[p.filename or UNNAMED for p in parts if p.content_id not in pictures],
            pictures=pictures,
        )
