"""Signed downloads: `GET /files/{token}` (conventions section 14).

A slice registers an opener for its kind of file and asks for links; what is behind a link is decided
by the token alone, so no credential is needed and nothing can be guessed or listed.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from urllib.parse import quote
from uuid import UUID

from pillarbox.kernel.clock import Clock
from pillarbox.kernel.http.request import OctetsAnswer, Reply, Request
from pillarbox.kernel.http.routing import Access, route
from pillarbox.kernel.ids import EPOCH
from pillarbox.kernel.postgres import time_limit
from pillarbox.kernel.security.tokens import Signer, TokenError
from pillarbox.kernel.storage.blobs import BlobStore
from pillarbox.kernel.wire.problems import Forbidden, MethodNotAllowed, NotFound, Problem

LIFETIME = timedelta(hours=1)
KIND = "file"
LOOK_UPS = 4
"""Files that are looked up at once in a process: who follows a link needs no key, and must not hold all
connections to the database."""

_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})\Z", re.ASCII | re.IGNORECASE)
_FALLBACK = re.compile(r"[^ !#-\[\]-~]")


Read = Callable[[int, int], AsyncIterator[bytes]]
"""Gives the bytes of a file from a start up to, not including, an end."""


@dataclass(frozen=True, slots=True)
class FileToServe:
    """A file and where its bytes are: in memory, in the blob store, or behind a function that makes them.

    Where `finish` is given, the size is not known yet: it returns the whole description, or None where the
    file is gone. It may wait for memory, so it is called outside the turns of looking up.
    """

    filename: str
    media: str
    size: int
    data: bytes | None
    blob: str | None
    read: Read | None = None
    finish: Callable[[], Awaitable[FileToServe | None]] | None = None


Opener = Callable[[UUID, UUID], Awaitable[FileToServe | None]]
"""Finds a file by team and id; None where it is gone."""


class RangeNotSatisfiable(Problem):
    status, name = 416, "validation_error"

    def __init__(self, size: int) -> None:
        super().__init__("The requested range cannot be had.", {"content-range": f"bytes */{size}"})


class FileLinks:
    """Makes links and opens what they point to."""

    def __init__(self, signer: Signer, clock: Clock, blobs: BlobStore, public_url: str) -> None:
        self._signer = signer
        self._clock = clock
        self._blobs = blobs
        self._public_url = public_url
        self._openers: dict[str, Opener] = {}
        self._turns = asyncio.Semaphore(LOOK_UPS)

    def register(self, kind: str, opener: Opener) -> None:
        """Serve files of this kind."""
        self._openers[kind] = opener

    def link(self, kind: str, team_id: UUID, file_id: UUID) -> tuple[str, datetime]:
        """Return a fresh URL and the instant at which it ends."""
        ends = self._clock.now() + LIFETIME
        ends -= (ends - EPOCH) % timedelta(milliseconds=1)
        token = self._signer.issue_until(KIND, (kind, team_id, file_id), ends)
        return f"{self._public_url}/files/{token}", ends

    async def open(self, token: str) -> FileToServe:
        """Open the file behind a token; raise 403 for a token that is not ours or over, 404 for a file that
        is gone."""
        try:
            kind, team_id, file_id = self._signer.read(KIND, token)
        except (TokenError, ValueError):
            raise Forbidden("The link is not valid or has expired.") from None
        opener = self._openers.get(kind) if isinstance(kind, str) else None
        if opener is None or not isinstance(team_id, UUID) or not isinstance(file_id, UUID):
            raise Forbidden("The link is not valid or has expired.")
        found = await self._looked_up(opener, team_id, file_id)
        if found is not None and found.finish is not None:
            found = await found.finish()
        if found is None:
            raise NotFound("File")
        return found

    async def _looked_up(self, opener: Opener, team_id: UUID, file_id: UUID) -> FileToServe | None:
        """Return what the opener finds, once a turn is free; the wait counts as time of the database."""
        async with time_limit.bounded():
            await self._turns.acquire()
        try:
            return await opener(team_id, file_id)
        finally:
            self._turns.release()

    def bytes_of(self, file: FileToServe, start: int, end: int) -> AsyncIterator[bytes]:
        """Return the bytes from `start` up to, not including, `end`."""
        if file.read is not None:
            return file.read(start, end)
        if file.blob is not None:
            return self._blobs.stream(file.blob, start, end)
        return _once((file.data or b"")[start:end])


async def _once(data: bytes) -> AsyncIterator[bytes]:
    yield data


@route(
    "GET",
    "/files/{token}",
    needs=Access.PUBLIC,
    also=(206,),
    problems=(403, 404, 416),
    headers={"range": str},
    summary="Download a file by its signed link",
)
async def download(request: Request) -> Reply[OctetsAnswer]:
    """Send the bytes behind a signed link."""
    if request.method not in {"GET", "HEAD"}:
        raise MethodNotAllowed("Use GET or HEAD.")
    files = request.use(FileLinks)
    found = await files.open(request.param("token"))
    wanted = wanted_range(request.header("range"), found.size)
    start, end = wanted or (0, found.size)
    headers = {
        "content-disposition": disposition(found.filename),
        "content-security-policy": "sandbox; default-src 'none'",
        "cache-control": "private, max-age=0",
        "accept-ranges": "bytes",
    }
    if wanted:
        headers["content-range"] = f"bytes {start}-{end - 1}/{found.size}"
    return Reply.stream(
        files.bytes_of(found, start, end),
        size=end - start,
        media=found.media,
        headers=headers,
        status=206 if wanted else 200,
    )


def wanted_range(header: str | None, size: int) -> tuple[int, int] | None:
    """Return the start and end of the one range asked for; None where the header asks for anything else."""
    found = _RANGE.match(header.strip()) if header else None
    if found is None or found.groups() == ("", ""):
        return None
    first, last = found.groups()
    if not first:
        start, end = max(0, size - int(last)), size
        if int(last) == 0:
            raise RangeNotSatisfiable(size)
    else:
        start, end = int(first), min(int(last) + 1, size) if last else size
    if start >= size or start >= end:
        raise RangeNotSatisfiable(size)
    return start, end


def disposition(filename: str) -> str:
    """Return a Content-Disposition that is always a download, with the name in ASCII and in UTF-8
    (RFC 6266)."""
    plain = _FALLBACK.sub("_", filename)
    return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(filename, safe='')}"
