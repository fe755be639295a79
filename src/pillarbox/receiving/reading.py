"""Reading a stored message: its text and html, its parts, all of it.

A message in the database is parsed anew each time; of one in the blob store the parsed fields are stored, and
only the octets of the requested parts are read.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Final, Literal, TypeVar
from uuid import UUID

import msgspec

from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.process.byte_budget import ByteBudget
from pillarbox.kernel.storage.blobs import BlobMissing, BlobStore
from pillarbox.kernel.wire import large_json
from pillarbox.kernel.work.team_turns import IsGone, TeamTurns
from pillarbox.mail.html import cids
from pillarbox.mail.message import parse, transfer_decoding
from pillarbox.mail.message.bodies import AttachedPart
from pillarbox.mail.message.mime_parts import ParsedPart as MimePart
from pillarbox.receiving import queries
from pillarbox.receiving.queries import AttachmentPart, Source
from pillarbox.receiving.rows import ParsedColumns

T = TypeVar("T")

HtmlFormat = Literal["data_uri", "cid"]
DATA_URI: Final = "data_uri"
CID: Final = "cid"

IN_PLACE: Final = 64 * 1024
AT_ONCE: Final = 128 * 1024 * 1024
"""How many octets of parts may be decoded at once; more waits its turn."""
BLOCK: Final = 256 * 1024

READ_AT_ONCE: Final = 160 * 1024 * 1024
"""How much memory messages may take at once while they are read to be shown."""
COST: Final = 12
"""The memory for each octet of a message while it is read, in octets: its row (up to 5), its texts with the
parser's copies (up to 7; a character takes four octets where one of the text is beyond U+FFFF)."""
REFUSAL: Final = "Too many large emails are being read. Try again in a moment."

EMPTY: Final = ParsedColumns(None, None, {})
"""The parsed columns of a message whose raw copy was removed."""


async def digest_of_received(db: TeamDb, _: UUID | None) -> str:
    """Return a text that is another one when the team has received an email."""
    return str(await queries.newest_id(db))


class MessageReader:
    """Reads messages. `longest` bounds the html with its images inside."""

    def __init__(self, blobs: BlobStore, threads: Executor, longest: int = cids.LONGEST_RESULT) -> None:
        self._blobs = blobs
        self._threads = threads
        self.longest = longest
        self._budget = ByteBudget(AT_ONCE)
        self._turns = TeamTurns(READ_AT_ONCE, REFUSAL)

    def turn(self, team_id: UUID, size: int, is_gone: IsGone) -> AbstractAsyncContextManager[None]:
        """Hold the memory in which a message of that size is read, from its row to its answer. Small ones
        need not wait. Raises ServerOverloaded where too many wait, and ClientGone for who has left."""
        return nullcontext() if size <= IN_PLACE else self._turns.of(team_id, COST * size, is_gone)

    async def parsed(self, source: Source | None) -> ParsedColumns:
        """Return text, html and headers."""
        if source is None:
            return EMPTY
        if source.parsed is not None:
            return await self._columns(source.parsed)
        raw = source.data or b""
        return await self._in_thread_if_large(len(raw), lambda: ParsedColumns.of(parse.parse(raw)))

    async def _columns(self, text: str) -> ParsedColumns:
        """Return the columns from their JSON; of a large one in pieces, since one call keeps others from
        running."""
        if len(text) <= IN_PLACE:
            return msgspec.json.decode(text, type=ParsedColumns)
        return await self._in_thread_if_large(
            len(text), lambda: msgspec.convert(large_json.decode(text.encode()), ParsedColumns)
        )

    async def shown_html(
        self, html: str, source: Source, parts: Sequence[AttachmentPart], html_format: HtmlFormat
    ) -> tuple[str, HtmlFormat]:
        """Return the html in the form that is wanted, or in the other where that would be too long. The
        caller holds a `turn`."""
        if html_format == CID:
            return html, CID
        images = _shown_images(html, parts)
        room = sum([image.size for image in images.values()]) // 3 * 4
        if room > self.longest:
            return html, CID
        octets = {cid: await self.octets(source, image) for cid, image in images.items()}
        found = await self._in_thread_if_large(
            len(html) + room,
            lambda: cids.with_data_uris(
                html,
                [_as_attachment(part) for part in parts],
                lambda attachment: octets[attachment.content_id or ""],
                self.longest,
            ),
        )
        return (html, CID) if found is None else (found, DATA_URI)

    async def pictures(
        self, html: str, source: Source, parts: Sequence[AttachmentPart], kinds: frozenset[str], room: int
    ) -> dict[str, tuple[str, bytes]]:
        """Return the type and octets of the images of these kinds that the html shows, as many as there is
        room for."""
        found: dict[str, tuple[str, bytes]] = {}
        for cid, image in _shown_images(html, parts).items():
            if image.content_type in kinds and image.size <= room:
                room -= image.size
                found[cid] = image.content_type, await self.octets(source, image)
        return found

    def part(self, db: TeamDb, part: AttachmentPart) -> Callable[[int, int], AsyncIterator[bytes]]:
        """Return a function that yields the decoded octets of a part from one place to another."""

        async def read(start: int, end: int) -> AsyncIterator[bytes]:
            async with self._budget.of(2 * (part.ends - part.starts)):
                span = await queries.span(db, part.email_id, part.starts, part.ends)
                if span is None:
                    return
                encoded = span.data
                if encoded is None:
                    encoded = await self._cut(span.blob or "", part.starts, part.ends)
                decoded = await self._decoded(encoded, part.encoding)
                for at in range(start, end, BLOCK):
                    yield decoded[at : min(at + BLOCK, end)]

        return read

    def whole(self, source: Source) -> Callable[[int, int], AsyncIterator[bytes]]:
        """Return a function that yields the message, with our trace fields in front, from one place to
        another."""
        head = len(source.trace)

        async def read(start: int, end: int) -> AsyncIterator[bytes]:
            if start < head:
                yield source.trace[start : min(end, head)]
            first, last = max(0, start - head), end - head
            if last <= first:
                return
            if source.blob is None:
                yield (source.data or b"")[first:last]
                return
            async for block in self._blobs.stream(source.blob, first, last):
                yield block

        return read

    async def octets(self, source: Source, part: AttachmentPart) -> bytes:
        """Return the decoded octets of a part. The caller holds a `turn`."""
        if source.data is not None:
            encoded = source.data[part.starts : part.ends]
        else:
            encoded = await self._cut(source.blob or "", part.starts, part.ends)
        return await self._decoded(encoded, part.encoding)

    async def _cut(self, blob: str, start: int, end: int) -> bytes:
        try:
            return b"".join([block async for block in self._blobs.stream(blob, start, end)])
        except BlobMissing:
            return b""

    async def _decoded(self, encoded: bytes, encoding: str) -> bytes:
        return await self._in_thread_if_large(
            len(encoded), lambda: transfer_decoding.decoded(encoded, 0, len(encoded), encoding)
        )

    async def _in_thread_if_large(self, octets: int, work: Callable[[], T]) -> T:
        if octets <= IN_PLACE:
            return work()
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)


def _shown_images(html: str, parts: Sequence[AttachmentPart]) -> Mapping[str, AttachmentPart]:
    """Return the images that the html shows, by Content-ID; of several with one id the first."""
    images: dict[str, AttachmentPart] = {}
    for part in parts:
        if part.content_id is not None and part.content_type.startswith("image/"):
            images.setdefault(part.content_id, part)
    shown = cids.referenced(html, map(_as_attachment, images.values())) if images else frozenset()
    return {cid: image for cid, image in images.items() if cid in shown}


def _as_attachment(part: AttachmentPart) -> AttachedPart:
    place = MimePart(
        content_type=part.content_type,
        parameters={},
        encoding=part.encoding,
        disposition=part.disposition,
        filename=part.filename,
        content_id=part.content_id,
        start=part.starts,
        content_start=part.starts,
        end=part.ends,
    )
    return AttachedPart(
        filename=part.filename,
        content_type=part.content_type,
        content_disposition=part.disposition,
        content_id=part.content_id,
        size=part.size,
        part=place,
    )
