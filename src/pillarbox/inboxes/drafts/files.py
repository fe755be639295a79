"""Attachments of drafts behind signed links."""

from __future__ import annotations

from typing import Final
from uuid import UUID

import asyncpg

from pillarbox.emails.inbox_mail import originals as sent
from pillarbox.inboxes.drafts import queries
from pillarbox.kernel.http.files import FileToServe
from pillarbox.kernel.postgres.database import TeamDb

KIND: Final = "draft-attachment"


class DraftAttachments:
    """The opener of their kind."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool

    async def open(self, team_id: UUID, attachment_id: UUID) -> FileToServe | None:
        """Return the attachment of a draft; that of a sent draft is read from its email."""
        db = TeamDb(self._pool, team_id)
        row = await queries.octets(db, attachment_id)
        if row is None:
            return None
        data, blob = row.data, row.blob
        if row.email_id is not None:
            held = await sent.held(db, row.email_id, row.position)
            if held is None:
                return None
            data, blob = held
        return FileToServe(filename=row.filename, media=row.content_type, size=row.size, data=data, blob=blob)
