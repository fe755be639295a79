"""Received mail as messages of inboxes: gives `pillarbox.inboxes.received_mail.ReceivedMailSource`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from uuid import UUID

from pillarbox.inboxes.received_mail import EmailVerdicts, MessageBody, MessageFile
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.receiving import files, queries, wire
from pillarbox.receiving.inbox_mail import queries as inbox_queries
from pillarbox.receiving.reading import DATA_URI, MessageReader
from pillarbox.usage import counting


class InboxMail:
    """Reads received mail for inboxes."""

    def __init__(self, reading: MessageReader) -> None:
        self._reading = reading

    async def sizes(self, db: TeamDb, ids: Sequence[UUID]) -> Mapping[UUID, int]:
        return await inbox_queries.sizes(db, ids) if ids else {}

    def turn(
        self, team_id: UUID, size: int, is_gone: Callable[[], bool]
    ) -> AbstractAsyncContextManager[None]:
        return self._reading.turn(team_id, size, is_gone)

    async def body(self, db: TeamDb, email_id: UUID) -> MessageBody:
        source = await queries.source(db, email_id)
        parsed = await self._reading.parsed(source)
        html = parsed.html
        if html is not None and source is not None:
            parts = await queries.parts(db, email_id)
            html, _ = await self._reading.shown_html(html, source, parts, DATA_URI)
        return MessageBody(html, parsed.text)

    async def verdicts(self, db: TeamDb, email_id: UUID) -> EmailVerdicts | None:
        row = await queries.verdicts(db, email_id)
        return None if row is None else wire.verdicts(row)

    async def files(self, db: TeamDb, ids: Sequence[UUID]) -> Mapping[UUID, Sequence[MessageFile]]:
        found: dict[UUID, list[MessageFile]] = {}
        for file in await inbox_queries.files(db, ids) if ids else ():
            found.setdefault(file.email_id, []).append(
                MessageFile(
                    id=file.id,
                    filename=file.filename,
                    size=file.size,
                    content_type=file.content_type,
                    disposition="inline" if file.inline else "attachment",
                    content_id=file.content_id,
                    kind=files.ATTACHMENT,
                )
            )
        return found

    async def refuse_above(self, db: TeamDb, ids: Sequence[UUID]) -> None:
        for email_id in ids:
            await counting.refuse_above(db, email_id)

    async def release(self, db: TeamDb, inbox_id: UUID, ids: Sequence[UUID]) -> None:
        if ids:
            await inbox_queries.release(db, inbox_id, ids)
