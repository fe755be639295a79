"""Received messages and their attachments behind signed links (conventions 14)."""

from __future__ import annotations

import re
from typing import Final
from uuid import UUID

import asyncpg

from pillarbox.kernel.http.files import FileToServe
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.receiving import queries
from pillarbox.receiving.reading import MessageReader

RAW: Final = "received"
ATTACHMENT: Final = "received-attachment"
"""Kinds of files."""

ANY_TYPE: Final = "application/octet-stream"
UNNAMED: Final = "attachment"

_TYPE = re.compile(r"[A-Za-z0-9!#$&^_.+-]{1,127}/[A-Za-z0-9!#$&^_.+-]{1,127}")


class ReceivedFiles:
    """The openers of both kinds."""

    def __init__(self, pool: asyncpg.Pool, reading: MessageReader) -> None:
        self._pool = pool
        self._reading = reading

    async def raw(self, team_id: UUID, email_id: UUID) -> FileToServe | None:
        """Return the whole message as it came, with our trace fields in front."""
        source = await queries.source(TeamDb(self._pool, team_id), email_id)
        if source is None:
            return None
        size = len(source.trace) + source.size
        return FileToServe(
            filename=f"{email_id}.eml",
            media="message/rfc822",
            size=size,
            data=None,
            blob=None,
            read=self._reading.whole(source),
        )

    async def attachment(self, team_id: UUID, attachment_id: UUID) -> FileToServe | None:
        """Return one attachment, decoded."""
        db = TeamDb(self._pool, team_id)
        part = await queries.part(db, attachment_id)
        if part is None:
            return None
        media = part.content_type if _TYPE.fullmatch(part.content_type) else ANY_TYPE
        return FileToServe(
            filename=part.filename or UNNAMED,
            media=media,
            size=part.size,
            data=None,
            blob=None,
            read=self._reading.part(db, part),
        )
