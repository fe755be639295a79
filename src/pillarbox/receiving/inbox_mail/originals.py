"""Received mail that is answered or forwarded, for `pillarbox.inboxes.sending.originals`."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from uuid import UUID

import msgspec

from pillarbox.inboxes.sending.originals import OriginalContent, OriginalFile, ReceivedFields
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.mail.message import header_block
from pillarbox.receiving import queries
from pillarbox.receiving.files import UNNAMED
from pillarbox.receiving.inbox_mail import queries as inbox_queries
from pillarbox.receiving.reading import MessageReader
from pillarbox.usage import counting

_texts = msgspec.json.Decoder(list[str]).decode


class InboxOriginals:
    """Reads received mail for its answers."""

    def __init__(self, reading: MessageReader) -> None:
        self._reading = reading

    async def fields(self, db: TeamDb, email_id: UUID) -> ReceivedFields | None:
        row = await inbox_queries.fields(db, email_id)
        if row is None:
            return None
        references, in_reply_to = row.references, row.in_reply_to
        if row.head is not None:
            named = header_block.first_of_each(header_block.split_message(row.head).fields)
            references, in_reply_to = _text(named, "references"), _text(named, "in-reply-to")
        to, cc, reply_to = _list(row.to_list), _list(row.cc_list), _list(row.reply_to_list)
        return ReceivedFields(to=to, cc=cc, reply_to=reply_to, references=references, in_reply_to=in_reply_to)

    async def size(self, db: TeamDb, email_id: UUID) -> int | None:
        return await inbox_queries.size(db, email_id)

    def turn(
        self, team_id: UUID, size: int, is_gone: Callable[[], bool]
    ) -> AbstractAsyncContextManager[None]:
        return self._reading.turn(team_id, size, is_gone)

    async def content(self, db: TeamDb, email_id: UUID, limit: int) -> OriginalContent | None:
        source = await queries.source(db, email_id)
        if source is None:
            return None
        parts = await queries.parts(db, email_id)
        if sum([part.size for part in parts]) > limit:
            raise ValueError("more than may be attached")
        parsed = await self._reading.parsed(source)
        files = [
            OriginalFile(
                part.filename or UNNAMED,
                part.content_type,
                part.content_id,
                await self._reading.octets(source, part),
            )
            for part in parts
        ]
        return OriginalContent(parsed.html, parsed.text, files)

    async def refuse_above(self, db: TeamDb, email_id: UUID) -> None:
        await counting.refuse_above(db, email_id)


def _list(text: str | None) -> list[str]:
    return [] if text is None else _texts(text)


def _text(named: dict[str, bytes], name: str) -> str | None:
    value = named.get(name)
    return None if value is None else value.decode("utf-8", "replace")
