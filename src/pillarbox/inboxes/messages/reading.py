"""Reads the messages of a thread with their bodies.

A page of a hundred messages may be some gigabytes. What is small is read at once; otherwise the messages are
read one by one, each when it is its turn (`ReceivedMailSource.turn`), and sent before the next one is read.
So a page takes the memory of one message.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Final
from uuid import UUID

from pillarbox.emails.inbox_mail import messages as inbox_mail
from pillarbox.emails.inbox_mail.messages import EmailFile
from pillarbox.inboxes.messages import wire
from pillarbox.inboxes.messages.lists import MessagePage
from pillarbox.inboxes.messages.queries import StoredMessage
from pillarbox.inboxes.received_mail import EmailVerdicts, MessageBody, MessageFile, ReceivedMailSource
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.process.offload import in_thread_if_large
from pillarbox.kernel.wire.large_answers import as_json
from pillarbox.kernel.wire.paging import ListOf
from pillarbox.kernel.wire.problems import ServerOverloaded
from pillarbox.mail.message.extracted_text import extracted_text

AT_ONCE: Final = 256 * 1024
"""Octets of messages that are read together."""

PAGE_OCTETS: Final = 32 * 1024 * 1024
"""Octets of stored messages at which a page ends (inboxes.md 6.1)."""

TRIES: Final = 60
PAUSE: Final = 0.5
"""An answer that has begun waits for its turn as often, with so many seconds between."""

IsGone = Callable[[], bool]


@dataclass(frozen=True, slots=True)
class _OpenedMessages:
    """Messages with what is known of them before they are read."""

    rows: Sequence[StoredMessage]
    received: Mapping[UUID, int]
    sent: Mapping[UUID, int]
    """Octets of the messages that were received, and of the bodies of those that were sent."""
    files: Mapping[UUID, Sequence[MessageFile]]

    @property
    def octets(self) -> int:
        return sum([self.octets_of(row) for row in self.rows])

    def octets_of(self, row: StoredMessage) -> int:
        return self.received.get(row.id) or self.sent.get(row.id) or 0

    def within(self, octets: int, *, from_end: bool) -> Sequence[StoredMessage]:
        """Return as many of the first messages, or of the last ones, as have so many octets; at least one."""
        rows = list(reversed(self.rows)) if from_end else list(self.rows)
        total, kept = 0, list[StoredMessage]()
        for row in rows:
            total += self.octets_of(row)
            if kept and total > octets:
                break
            kept.append(row)
        return kept[::-1] if from_end else kept


class MessageReading:
    """Shows messages."""

    def __init__(self, received: ReceivedMailSource, page_octets: int = PAGE_OCTETS) -> None:
        self._received = received
        self._page_octets = page_octets

    async def one(self, db: TeamDb, row: StoredMessage, is_gone: IsGone) -> bytes:
        """Return the answer with this message."""
        opened = await self._opened(db, [row])
        return await self._in_turn(db, opened, row, is_gone)

    async def listed(
        self, db: TeamDb, page: MessagePage, is_gone: IsGone
    ) -> ListOf[wire.Message] | AsyncIterator[bytes]:
        """Return the answer with these messages, in pieces where they are large; where they are very large it
        ends earlier, and has more. Raises ServerOverloaded before the first piece, where so much is being
        read that there is no room to wait."""
        opened = await self._opened(db, page.rows)
        rows = opened.within(self._page_octets, from_end=page.is_before)
        has_more = page.has_more or len(rows) < len(page.rows)
        opened = replace(opened, rows=rows)
        if opened.octets <= AT_ONCE:
            return ListOf(has_more=has_more, data=[await self._shown(db, opened, row) for row in rows])
        first = await self._in_turn(db, opened, rows[0], is_gone)
        return self._pieces(db, opened, first, has_more=has_more, is_gone=is_gone)

    async def files(self, db: TeamDb, row: StoredMessage) -> Sequence[MessageFile]:
        """Return the attachments of a message."""
        return (await self._files(db, [row])).get(row.id, ())

    async def verdicts(self, db: TeamDb, row: StoredMessage) -> EmailVerdicts | None:
        """Return the verdicts on a message: SPF, DKIM, DMARC and spam. None for an outbound one."""
        return await self._received.verdicts(db, row.id) if row.is_inbound else None

    async def octets(self, db: TeamDb, row: StoredMessage) -> int:
        """Return how many octets of this message are stored."""
        return (await self._opened(db, [row])).octets_of(row)

    @asynccontextmanager
    async def body(self, db: TeamDb, row: StoredMessage, is_gone: IsGone) -> AsyncIterator[MessageBody]:
        """Yield the bodies of a message, and hold the memory for them."""
        opened = await self._opened(db, [row])
        async with self._received.turn(db.team_id, opened.octets_of(row), is_gone):
            yield await self._body(db, opened, row)

    async def refuse_above(self, db: TeamDb, rows: Sequence[StoredMessage]) -> None:
        """Raise a 403 where the content of one of them is kept from the team."""
        await self._received.refuse_above(db, [row.id for row in rows if row.is_inbound])

    async def _pieces(
        self, db: TeamDb, opened: _OpenedMessages, first: bytes, *, has_more: bool, is_gone: IsGone
    ) -> AsyncIterator[bytes]:
        yield b'{"object":"list","has_more":%s,"data":[' % (b"true" if has_more else b"false")
        yield first
        del first
        for row in opened.rows[1:]:
            yield b","
            yield await self._in_turn(db, opened, row, is_gone, tries=TRIES)
        yield b"]}"

    async def _in_turn(
        self, db: TeamDb, opened: _OpenedMessages, row: StoredMessage, is_gone: IsGone, *, tries: int = 1
    ) -> bytes:
        """Return one message as JSON. Memory is held while it is read and encoded."""
        for left in reversed(range(tries)):
            try:
                async with self._received.turn(db.team_id, opened.octets_of(row), is_gone):
                    return await as_json(await self._shown(db, opened, row))
            except ServerOverloaded:
                if not left:
                    raise
                await asyncio.sleep(PAUSE)
        raise AssertionError("unreachable")

    async def _shown(self, db: TeamDb, opened: _OpenedMessages, row: StoredMessage) -> wire.Message:
        body = await self._body(db, opened, row)
        octets = len(body.text or "") + len(body.html or "")
        extracted = await in_thread_if_large(octets, extracted_text, body.text, body.html, row.subject)
        return wire.message(row, body, opened.files.get(row.id, ()), extracted)

    async def _body(self, db: TeamDb, opened: _OpenedMessages, row: StoredMessage) -> MessageBody:
        if row.id in opened.received:
            return await self._received.body(db, row.id)
        found = await inbox_mail.bodies(db, row.id)
        return MessageBody(found.html, found.text)

    async def _opened(self, db: TeamDb, rows: Sequence[StoredMessage]) -> _OpenedMessages:
        """Return the messages with their sizes and attachments. One that an inbox sent to itself is inbound,
        but stored as a sent email."""
        received = await self._received.sizes(db, [row.id for row in rows if row.is_inbound])
        sent = await inbox_mail.sizes(db, [row.id for row in rows if row.id not in received])
        return _OpenedMessages(rows, received, sent, await self._files(db, rows))

    async def _files(self, db: TeamDb, rows: Sequence[StoredMessage]) -> Mapping[UUID, Sequence[MessageFile]]:
        rows = [row for row in rows if row.attachments]
        received = await self._received.files(db, [row.id for row in rows if row.is_inbound])
        sent = await inbox_mail.attachments(db, [row.id for row in rows if row.id not in received])
        return {**received, **{one: [_file(attached) for attached in sent[one]] for one in sent}}


def _file(attached: EmailFile) -> MessageFile:
    return MessageFile(
        id=attached.id,
        filename=attached.filename,
        size=attached.size,
        content_type=attached.content_type,
        disposition="attachment" if attached.cid is None else "inline",
        content_id=attached.cid,
        kind=inbox_mail.FILE_KIND,
    )
