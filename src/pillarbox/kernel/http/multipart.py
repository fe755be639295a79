"""Reading a multipart form while it comes (RFC 7578): nothing of it is held but the part of a field.

The parts are read in their order, each to its end before the next. Whatever is wrong with the form itself is
400; a body that is larger than the route takes is 413.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Final

from pillarbox.kernel.http.body import CLOSE, next_part, too_large
from pillarbox.kernel.http.request_cycle import RequestCycle
from pillarbox.kernel.wire.problems import BadRequest, TooLarge

MOST_HEADERS: Final = 8 * 1024
MOST_PARTS: Final = 100
MORE_TIME_FOR: Final = 1024 * 1024
"""Octets for which a body has the time that others have for all of theirs."""

_MEDIA = re.compile(r"multipart/form-data[ \t]*;(.*)", re.I | re.S)
_PARAMETER = re.compile(
    r';?[ \t]*([!#$%&\'*+.^_`|~0-9A-Za-z-]+)[ \t]*=[ \t]*(?:"((?:[^"\\]|\\.)*)"|([^ \t;"]+))[ \t]*'
)
_BOUNDARY = re.compile(r"[0-9A-Za-z'()+_,./:=? -]{0,69}[0-9A-Za-z'()+_,./:=?-]")


class NotAForm(BadRequest):
    """What came is no multipart form; the connection is closed."""

    def __init__(self, what: str) -> None:
        super().__init__(f"The request body is not a valid multipart form. {what}", CLOSE)


@dataclass(frozen=True, slots=True)
class Part:
    """The head of one part of a form."""

    name: str
    is_file: bool


def boundary_of(content_type: bytes | None) -> bytes | None:
    """What divides the parts of a form; None where the content type is not that of a form."""
    found = _MEDIA.fullmatch((content_type or b"").decode("latin-1").strip())
    boundary = _parameters(found[1]).get("boundary", "") if found else ""
    return boundary.encode("latin-1") if _BOUNDARY.fullmatch(boundary) else None


class MultipartForm:
    """The form that a request brings."""

    def __init__(self, cycle: RequestCycle, boundary: bytes, limit: int) -> None:
        self._cycle = cycle
        self._limit = limit
        self._delimiter = b"\r\n--" + boundary
        # The first delimiter may stand at the very beginning.
        self._held = bytearray(b"\r\n")
        self._more = True
        self._came = 0
        self._timed = 0
        self._parts = 0
        self._in_part = False

    async def next(self) -> Part | None:
        """The next part; None behind the last one, when the whole body has come. What is left of the part
        before is passed over."""
        if self._in_part or not self._parts:
            async for _ in self.pieces():
                pass
        self._parts += 1
        if self._parts > MOST_PARTS:
            raise NotAForm(f"It has more than {MOST_PARTS} parts.")
        line = await self._until(b"\r\n", MOST_HEADERS, or_end=True)
        if line.startswith(b"--"):
            while self._more:
                self._held.clear()
                await self._receive()
            return None
        if line.strip(b" \t"):
            raise NotAForm("A boundary is followed by other text.")
        self._in_part = True
        return await self._head()

    async def pieces(self) -> AsyncIterator[bytes]:
        """The content of the part, as it comes."""
        self._in_part = True
        keep = len(self._delimiter) - 1
        while True:
            end = self._held.find(self._delimiter)
            if end >= 0:
                piece = bytes(self._held[:end])
                del self._held[: end + len(self._delimiter)]
                self._in_part = False
                if piece:
                    yield piece
                return
            if len(self._held) > keep:
                piece = bytes(self._held[:-keep])
                del self._held[:-keep]
                yield piece
            await self._receive_more()

    async def text(self, most: int) -> str:
        """The content of a part as text; 413 where it has more than so many octets."""
        content = bytearray()
        async for piece in self.pieces():
            content += piece
            if len(content) > most:
                raise TooLarge(f"A form field is larger than {most} bytes.", CLOSE)
        try:
            return content.decode()
        except UnicodeDecodeError:
            raise NotAForm("A field is not UTF-8.") from None

    async def _head(self) -> Part:
        head = b"\r\n"
        while not head.endswith(b"\r\n\r\n"):
            head += await self._until(b"\r\n", MOST_HEADERS) + b"\r\n"
            if len(head) > MOST_HEADERS:
                raise NotAForm("The headers of a part are too large.")
        for line in head.decode("utf-8", "replace").split("\r\n"):
            field, _, value = line.partition(":")
            if field.strip().lower() == "content-disposition":
                return _part(value)
        raise NotAForm("A part has no `Content-Disposition`.")

    async def _until(self, end: bytes, most: int, *, or_end: bool = False) -> bytes:
        """What comes before `end`, which is passed over. With `or_end` the body may end, instead, behind
        `--`."""
        while (at := self._held.find(end)) < 0:
            if len(self._held) > most:
                raise NotAForm("A line is too long.")
            if or_end and self._held.startswith(b"--"):
                return bytes(self._held)
            await self._receive_more()
        found = bytes(self._held[:at])
        del self._held[: at + len(end)]
        return found

    async def _receive_more(self) -> None:
        if not self._more:
            raise NotAForm("Its last boundary is missing.")
        await self._receive()

    async def _receive(self) -> None:
        part, self._more = await next_part(self._cycle.receive)
        self._came += len(part)
        if self._came > self._limit:
            raise too_large(self._limit)
        if self._came >= self._timed + MORE_TIME_FOR:
            self._timed = self._came
            self._cycle.more_time()
        self._held += part


def _part(disposition: str) -> Part:
    kind, _, rest = disposition.partition(";")
    found = _parameters(rest)
    if kind.strip().lower() != "form-data" or "name" not in found:
        raise NotAForm("A part has no name.")
    return Part(found["name"], "filename" in found or "filename*" in found)


def _parameters(text: str) -> dict[str, str]:
    """The parameters of a header by name; the first of a name counts."""
    found: dict[str, str] = {}
    at = 0
    while (parameter := _PARAMETER.match(text, at)) is not None:
        name, quoted, plain = parameter.groups()
        value = plain if quoted is None else re.sub(r"\\(.)", r"\1", quoted)
        found.setdefault(name.lower(), value)
        at = parameter.end()
    return found
