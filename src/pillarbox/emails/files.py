"""Attachments of sent emails behind signed links."""

from __future__ import annotations

from uuid import UUID

import asyncpg

from pillarbox.emails import queries
from pillarbox.kernel.http.files import FileToServe
from pillarbox.kernel.postgres.database import TeamDb


class AttachmentFiles:
    """The opener of file kind `attachment`."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool

    async def open(self, team_id: UUID, attachment_id: UUID) -> FileToServe | None:
        row = await queries.attachment_bytes(TeamDb(self._pool, team_id), attachment_id)
        if row is None:
            return None
        return FileToServe(
            filename=row.filename, media=row.content_type, size=row.size, data=row.data, blob=row.blob
        )
