"""Reading and parsing the message of a row."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import TypeVar
from uuid import UUID

import asyncpg

from pillarbox.capture import message, queries
from pillarbox.capture.message import CapturedMessage, CapturedPart
from pillarbox.capture.queries import CapturedRow, RawMail
from pillarbox.dashboard.page_work import PageWork
from pillarbox.kernel.http.body import ClientGone
from pillarbox.kernel.http.files import FileToServe
from pillarbox.kernel.observability.log import get
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.security.secrets import KeyRing, KeyRingError
from pillarbox.kernel.storage.blobs import BlobMissing, BlobStore
from pillarbox.kernel.wire.problems import NotFound
from pillarbox.kernel.work.team_turns import IsGone, never

log = get("capture")

T = TypeVar("T")

AT_ONCE = 2
"""Messages that may be in memory at once for reading."""


class Reader:
    """Reads captured messages, a few at a time, in the thread of the pages."""

    def __init__(self, pool: asyncpg.Pool, blobs: BlobStore, work: PageWork, ring: KeyRing) -> None:
        self.work = work
        self._pool = pool
        self._blobs = blobs
        self._ring = ring
        self._room = asyncio.Semaphore(AT_ONCE)

    async def row(self, captured_id: UUID) -> CapturedRow:
        """Return the mail without its bytes; NotFound."""
        found = await queries.get(self._pool, captured_id)
        if found is None:
            raise NotFound("Captured mail")
        return found

    async def message(self, row: CapturedRow, is_gone: IsGone = never) -> CapturedMessage:
        """Return the message of a mail; NotFound when it was removed meanwhile."""
        return await self.read(row, message.read, is_gone)

    async def part(
        self, row: CapturedRow, number: int, is_gone: IsGone = never
    ) -> tuple[CapturedPart, bytes]:
        """Return one part with its bytes; raises NotFound."""
        found = await self.read(row, lambda raw: message.part(raw, number), is_gone)
        if found is None:
            raise NotFound("Attachment")
        return found

    async def source(self, row: CapturedRow, limit: int) -> bytes:
        """Return the first `limit` bytes as they would have gone out."""
        async with self._room:
            return b"".join([part async for part in await self.stream(row, limit)])

    async def stream(self, row: CapturedRow, limit: int | None = None) -> AsyncIterator[bytes]:
        """Return the message as it would have gone out, in pieces."""
        found = await queries.raw_mail(self._pool, row.team_id, row.id)
        if found is None:
            raise NotFound("Captured mail")
        end = row.size if limit is None else min(limit, row.size)
        if found.blob is not None:
            return self._blobs.stream(found.blob, 0, end)
        return _once(self._opened(row, found)[:end])

    async def read(self, row: CapturedRow, work: Callable[[bytes], T], is_gone: IsGone = never) -> T:
        """Run `work` on the message in the thread; NotFound. Nothing is read for a client that is gone."""
        async with self._room:
            if is_gone():
                raise ClientGone
            raw = await self._raw(row)
            return await self.work.do(row.team_id, lambda: work(raw), is_gone)

    async def _raw(self, row: CapturedRow) -> bytes:
        found = await queries.raw_mail(self._pool, row.team_id, row.id)
        if found is None:
            raise NotFound("Captured mail")
        if found.blob is None:
            return self._opened(row, found)
        try:
            return await self._blobs.get(found.blob)
        except BlobMissing:
            raise NotFound("Captured mail") from None

    def _opened(self, row: CapturedRow, raw: RawMail) -> bytes:
        """Return the message; NotFound where the key that sealed it is gone."""
        if not raw.sealed or raw.data is None:
            return raw.data or b""
        try:
            return self._ring.open(raw.data, queries.CAPTURED.context(row.id))
        except KeyRingError as trouble:
            log.warning("capture.unreadable", mail=row.id, trouble=str(trouble))
            raise NotFound("Captured mail") from None


async def kept_message(db: TeamDb, email_id: UUID) -> FileToServe | None:
    """Return the message of a sent email as it would have left, for those who may read their team's emails;
    None where none is kept, or where it is sealed."""
    found = await queries.of_email(db, email_id)
    if found is None:
        return None
    return FileToServe(
        filename=f"{email_id}.eml",
        media="message/rfc822",
        size=found.size,
        data=found.data,
        blob=found.blob,
    )


async def _once(data: bytes) -> AsyncIterator[bytes]:
    yield data
