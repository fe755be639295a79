"""Reading a multipart form while it comes (RFC 7578): only the octets that came last are held.

The parts are read in their order, each to its end before the next. A fault of the form itself is 400; a body
that is larger than the route takes is 413.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Final

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

from pillarbox.kernel.http.body import CLOSE, next_part, too_large
from pillarbox.kernel.http.request_cycle import RequestCycle
from pillarbox.kernel.wire.problems import BadRequest, TooLarge

MEDIA: Final = b"multipart/form-data"
LONGEST_BOUNDARY: Final = 70
LONGEST_HEADER: Final = 8 * 1024
MOST_HEADERS: Final = 16
MOST_PARTS: Final = 100
MORE_TIME_FOR: Final = 1024 * 1024
"""Octets for which a body has the time that others have for all of theirs."""


# A malformed form is answered; it is not worth a line of the log.
logging.getLogger("python_multipart").setLevel(logging.CRITICAL)


class NotAForm(BadRequest):
    """The body is not a valid multipart form (400); the connection is closed."""

    def __init__(self, what: str) -> None:
        super().__init__(f"The request body is not a valid multipart form. {what}", CLOSE)


@dataclass(frozen=True, slots=True)
class FormPart:
    """The head of one part of a form. `file_name` is what the sender calls the file, "" without one."""

    name: str
    file_name: str = ""


class _End:
    """Behind the last octet of a part."""


_END: Final = _End()


def boundary_of(content_type: bytes | None) -> bytes | None:
    """Return the boundary between the parts of a form; None where the content type is not that of a form."""
    media, options = parse_options_header(content_type)
    boundary = options.get(b"boundary", b"") if media.lower() == MEDIA else b""
    return boundary if 0 < len(boundary) <= LONGEST_BOUNDARY else None


class MultipartForm:
    """The form that a request brings."""

    def __init__(self, cycle: RequestCycle, boundary: bytes, limit: int) -> None:
        self._cycle = cycle
        self._limit = limit
        self._more = True
        self._came = 0
        self._timed = 0
        self._parts = 0
        self._is_whole = False
        self._field = b""
        self._value = b""
        self._disposition: bytes | None = None
        self._events: deque[FormPart | bytes | _End] = deque()
        self._parser = MultipartParser(
            boundary,
            {
                "on_part_begin": self._on_part,
                "on_header_field": self._on_field,
                "on_header_value": self._on_value,
                "on_header_end": self._on_header,
                "on_headers_finished": self._on_head,
                "on_part_data": self._on_data,
                "on_part_end": lambda: self._events.append(_END),
                "on_end": self._on_end,
            },
            max_header_count=MOST_HEADERS,
            max_header_size=LONGEST_HEADER,
        )

    async def next(self) -> FormPart | None:
        """Return the next part; None behind the last one, when the whole body has come. The unread rest of
        the part before is skipped."""
        while True:
            while self._events:
                event = self._events.popleft()
                if isinstance(event, FormPart):
                    return event
            if not self._more:
                if not self._is_whole:
                    raise NotAForm("Its last boundary is missing.")
                return None
            await self._receive()

    async def pieces(self) -> AsyncIterator[bytes]:
        """Yield the content of the part, as it comes."""
        while True:
            while self._events:
                event = self._events.popleft()
                if isinstance(event, bytes):
                    yield event
                else:
                    return
            if not self._more:
                raise NotAForm("Its last boundary is missing.")
            await self._receive()

    async def text(self, limit: int) -> str:
        """Return the content of a part as text; raise 413 where it has more than so many octets."""
        content = bytearray()
        async for piece in self.pieces():
            content += piece
            if len(content) > limit:
                raise TooLarge(f"A form field is larger than {limit} bytes.", CLOSE)
        try:
            return content.decode()
        except UnicodeDecodeError:
            raise NotAForm("A field is not UTF-8.") from None

    async def _receive(self) -> None:
        part, self._more = await next_part(self._cycle.receive)
        self._came += len(part)
        if self._came > self._limit:
            raise too_large(self._limit)
        if self._came >= self._timed + MORE_TIME_FOR:
            self._timed = self._came
            self._cycle.more_time()
        if self._is_whole:
            return
        try:
            self._parser.write(bytes(part))
        except FormParserError:
            raise NotAForm(
                "Its parts are not divided as its content type says, or a head is too large."
            ) from None

    def _on_part(self) -> None:
        self._parts += 1
        if self._parts > MOST_PARTS:
            raise NotAForm(f"It has more than {MOST_PARTS} parts.")
        self._disposition = None

    def _on_field(self, data: bytes, start: int, end: int) -> None:
        self._field += data[start:end]

    def _on_value(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]

    def _on_header(self) -> None:
        if self._disposition is None and self._field.strip().lower() == b"content-disposition":
            self._disposition = self._value
        self._field = self._value = b""

    def _on_head(self) -> None:
        if self._disposition is None:
            raise NotAForm("A part has no `Content-Disposition`.")
        kind, options = parse_options_header(self._disposition)
        if kind.lower() != b"form-data" or b"name" not in options:
            raise NotAForm("A part has no name.")
        name, file_name = (options.get(key, b"").decode("utf-8", "replace") for key in (b"name", b"filename"))
        self._events.append(FormPart(name, file_name))

    def _on_data(self, data: bytes, start: int, end: int) -> None:
        self._events.append(data[start:end])

    def _on_end(self) -> None:
        self._is_whole = True
