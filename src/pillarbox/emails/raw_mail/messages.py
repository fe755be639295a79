"""The whole message of a sent email, to be downloaded or shown."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Final, NamedTuple
from uuid import UUID

import asyncpg
import msgspec

from pillarbox.emails import queries
from pillarbox.emails.insights.origin import origin_of
from pillarbox.emails.queries import EmailRow, StoredAttachment
from pillarbox.kernel.http.files import FileToServe
from pillarbox.kernel.postgres import time_limit
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.process.byte_budget import OwnedBudget
from pillarbox.kernel.process.offload import in_thread_if_large
from pillarbox.kernel.storage.blobs import BlobMissing, BlobStore
from pillarbox.kernel.wire.problems import ServerOverloaded
from pillarbox.mail.message.address import Mailbox, parse_mailbox
from pillarbox.mail.message.attachments import OutgoingFile, written
from pillarbox.mail.message.compose import OutgoingMessage, compose_pieces
from pillarbox.mail.message.files import EncodedFile, ExternalFile, FileChanged
from pillarbox.mail.message.long_content import LongContent

RAW: Final = "sent"
"""The kind of file of a whole message."""

MEDIA: Final = "message/rfc822"
AT_ONCE: Final = 64 * 1024 * 1024
"""Octets that messages have together while they are composed, in one process."""

OF_TEAM: Final = 16 * 1024 * 1024
"""The part of them that one team has at most; a larger message goes alone among those of its team."""

COMPOSED_AT_ONCE: Final = 4
"""Messages that are composed at once: each may hold a connection to the database."""

READ_AT_ONCE: Final = 256 * 1024 * 1024
READ_OF_TEAM: Final = 64 * 1024 * 1024
"""Octets of composed bodies that readers wait for, of all teams and of one, in one process."""

COST: Final = 6
"""Octets in memory for each octet of a body: as text, encoded, and joined."""

BLOCK: Final = 256 * 1024

_texts = msgspec.json.Decoder(list[str]).decode


@dataclass(frozen=True, slots=True)
class KeptMessages:
    """`find` answers the message of an email as it left; the slice that keeps such messages provides it."""

    find: Callable[[TeamDb, UUID], Awaitable[FileToServe | None]]


class MessageBeginning(NamedTuple):
    """The first octets of a message. `is_original` says that the message is kept as it left."""

    octets: bytes
    is_cut: bool
    is_original: bool


class ComposedMessage(NamedTuple):
    """A message, and how many of its octets are in memory."""

    content: LongContent
    octets: int


class SentMessages:
    """Finds kept messages, and composes the others from their rows. Attachments are read as they are sent."""

    def __init__(self, pool: asyncpg.Pool, blobs: BlobStore, kept: KeptMessages | None) -> None:
        self._pool = pool
        self._blobs = blobs
        self._kept = kept
        self._budget = OwnedBudget(AT_ONCE, OF_TEAM)
        self._turns = asyncio.Semaphore(COMPOSED_AT_ONCE)
        self._read_now: Counter[UUID] = Counter()

    async def is_original(self, db: TeamDb, email_id: UUID) -> bool:
        """Return whether the message is kept as it left."""
        return self._kept is not None and await self._kept.find(db, email_id) is not None

    async def file(self, team_id: UUID, email_id: UUID) -> FileToServe | None:
        """Return the message as a file; None where the team has no such email."""
        found = await self.open(team_id, email_id)
        return found if found is None or found.finish is None else await found.finish()

    async def open(self, team_id: UUID, email_id: UUID) -> FileToServe | None:
        """Return the message as a file whose size may still be to be found out; None as `file` does."""
        db = TeamDb(self._pool, team_id)
        if self._kept is not None and (kept := await self._kept.find(db, email_id)) is not None:
            return kept
        if await queries.octets(db, email_id) is None:
            return None
        return FileToServe(
            filename=f"{email_id}.eml",
            media=MEDIA,
            size=0,
            data=None,
            blob=None,
            read=partial(self._read, db, email_id),
            finish=partial(self._measured, db, email_id),
        )

    async def _measured(self, db: TeamDb, email_id: UUID) -> FileToServe | None:
        """Return the message as a file; None where a part of it is gone."""
        found = await self._content(db, email_id)
        if found is None:
            return None
        self._check_readers(db.team_id, found.octets)
        return FileToServe(
            filename=f"{email_id}.eml",
            media=MEDIA,
            size=found.content.size,
            data=None,
            blob=None,
            read=partial(self._read, db, email_id),
        )

    async def beginning(self, db: TeamDb, email_id: UUID, limit: int) -> MessageBeginning | None:
        """Return so many octets of the message; None where there is none."""
        is_original = await self.is_original(db, email_id)
        found = await self.file(db.team_id, email_id)
        if found is None:
            return None
        end = min(limit, found.size)
        if found.read is not None:
            blocks = found.read(0, end)
        elif found.blob is not None:
            blocks = self._blobs.stream(found.blob, 0, end)
        else:
            return MessageBeginning((found.data or b"")[:end], found.size > end, is_original)
        octets = b"".join([block async for block in blocks])
        return MessageBeginning(octets, found.size > end, is_original)

    async def _read(self, db: TeamDb, email_id: UUID, start: int, end: int) -> AsyncIterator[bytes]:
        """Yield the composed message from one place to another. However slow the reader is, nobody waits for
        it: what it holds counts among the readers only."""
        found = await self._content(db, email_id)
        if found is None:
            return
        with self._counted(db.team_id, found.octets):
            at = 0
            async for block in found.content.blocks():
                for begin in range(max(0, start - at), min(len(block), end - at), BLOCK):
                    yield block[begin : min(begin + BLOCK, end - at)]
                at += len(block)
                if at >= end:
                    return

    async def _content(self, db: TeamDb, email_id: UUID) -> ComposedMessage | None:
        """Return the composed message; None where it or a part of it is gone. Raise ServerOverloaded where
        there is no memory for it in time."""
        octets = await queries.octets(db, email_id)
        if octets is None:
            return None
        async with self._turn(db.team_id, COST * octets):
            email = await queries.get(db, email_id)
            if email is None:
                return None
            try:
                content = await self._composed(db, email, octets)
            except (BlobMissing, FileChanged):
                return None
        return ComposedMessage(
            content, sum(len(piece) for piece in content.pieces if isinstance(piece, bytes))
        )

    @asynccontextmanager
    async def _turn(self, team_id: UUID, weight: int) -> AsyncIterator[None]:
        async with AsyncExitStack() as held:
            try:
                async with time_limit.bounded():
                    await held.enter_async_context(self._budget.of(team_id, weight))
                    await held.enter_async_context(self._turns)
            except TimeoutError:
                raise ServerOverloaded("Too many messages are being put together. Try again later.") from None
            yield

    def _check_readers(self, team_id: UUID, octets: int) -> None:
        """Raise ServerOverloaded where one more reader would hold too much; a first one never does."""
        for now, most in ((self._read_now[team_id], READ_OF_TEAM), (self._read_now.total(), READ_AT_ONCE)):
            if now and now + octets > most:
                raise ServerOverloaded("Too many messages are being downloaded. Try again later.")

    @contextmanager
    def _counted(self, team_id: UUID, octets: int) -> Iterator[None]:
        self._check_readers(team_id, octets)
        self._read_now[team_id] += octets
        try:
            yield
        finally:
            self._read_now[team_id] -= octets
            if not self._read_now[team_id]:
                del self._read_now[team_id]

    async def _composed(self, db: TeamDb, email: EmailRow, octets: int) -> LongContent:
        origin = await origin_of(db, email.id)
        attachments = [
            OutgoingFile(row.filename, row.content_type, await self._encoded(db, row), row.cid)
            for row in await queries.attachments(db, email.id)
        ]
        message = OutgoingMessage(
            sender=parse_mailbox(email.sender),
            to=_mailboxes(email.to_list),
            cc=_mailboxes(email.cc_list),
            reply_to=_mailboxes(email.reply_to_list),
            subject=email.subject,
            date=max(email.created_at, email.scheduled_at) if email.scheduled_at else email.created_at,
            message_id=email.message_id,
            html=email.html,
            text=email.text,
            headers=() if origin is None else origin.headers,
            attachments=attachments,
            seed=email.id.bytes,
        )
        pieces = await in_thread_if_large(octets, compose_pieces, message)
        return LongContent(pieces)

    async def _encoded(self, db: TeamDb, row: StoredAttachment) -> EncodedFile:
        return await written(ExternalFile(row.size, partial(self._octets, db, row.id)), row.content_type)

    async def _octets(self, db: TeamDb, attachment_id: UUID) -> AsyncIterator[bytes]:
        """Yield an attachment, whose row or blob is read now."""
        found = await queries.attachment_bytes(db, attachment_id)
        if found is None:
            raise FileChanged("an attachment was removed")
        if found.blob is None:
            yield found.data or b""
            return
        async for block in self._blobs.stream(found.blob, 0, found.size):
            yield block


def _mailboxes(text: str | None) -> list[Mailbox]:
    return [parse_mailbox(item) for item in _texts(text)] if text else []
