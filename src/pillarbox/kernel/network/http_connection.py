"""One HTTP/1.1 connection to a server: a request goes out, its answer comes in, then the next one.

The answer is read by httptools (the parser of Node.js, which parses our own requests too), as leniently as
clients usually do: a bare line feed or a blank in a header is no failure. Header names and values are
not kept. What counts is where the answer ends (RFC 9112, 6.3): an interim answer is none, and what a server
sends behind its answer is not read and ends the connection, so it is never taken for the next answer. A body
behind a status that has none (204, 304) is such a thing: the answer stands.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import NamedTuple, cast

import httptools

MOST_HEAD = 32 * 1024
"""Bytes that the head of an answer may have, with those of interim answers before it."""

SWITCHING = 101
BODILESS = frozenset({204, 304})
FRAMING = frozenset({b"content-length", b"transfer-encoding"})


class HttpResponse(NamedTuple):
    """A complete answer; `cut` where the body went on beyond what is wanted."""

    status: int
    body: bytes
    cut: bool


class NoAnswer(Exception):  # noqa: N818 - it is what became of the request
    """The connection ended, or what came is not HTTP. `headless`: not even the head of an answer came."""

    def __init__(self, *, headless: bool) -> None:
        super().__init__("no complete answer")
        self.headless = headless


@dataclass(slots=True)
class _IncomingResponse:
    """What has arrived of an answer. `remaining` is how much of its body may still come; `is_framed` where
    its head says how long the body is; `ended` once it is complete, or never will be."""

    remaining: int
    received: int = 0
    status: int = 0
    parts: list[bytes] = field(default_factory=list)
    has_head: bool = False
    is_framed: bool = False
    is_last: bool = False
    is_broken: bool = False
    ended: bool = False


class HttpConnection(asyncio.Protocol):
    """A connection that keeps at most `most_bytes` of each body."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._parser.set_dangerous_leniencies(
            lenient_headers=True, lenient_optional_cr_before_lf=True, lenient_spaces_after_chunk_size=True
        )
        self._answer: asyncio.Future[HttpResponse] | None = None
        self._is_open = False
        self._in = _IncomingResponse(most_bytes)

    @property
    def is_free(self) -> bool:
        """Whether the connection lives, and the last answer and nothing else has come."""
        return self._is_open and self._answer is None

    async def ask(self, request: bytes) -> HttpResponse:
        """The answer to a whole request; raises NoAnswer. A caller that is canceled ends the connection."""
        if self._transport is None or not self.is_free:
            raise NoAnswer(headless=True)
        self._in = _IncomingResponse(self._most_bytes)
        answer: asyncio.Future[HttpResponse] = asyncio.get_running_loop().create_future()
        self._answer = answer
        self._transport.write(request)
        try:
            return await answer
        finally:
            if not answer.done() or answer.cancelled():
                self.close()
            self._answer = None

    def close(self) -> None:
        """End it at once."""
        self._is_open = False
        if self._transport is not None:
            self._transport.abort()

    # What the event loop calls ----------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._is_open = True

    def data_received(self, data: bytes) -> None:
        come = self._in
        if self._answer is None or come.ended:
            self.close()
            return
        come.received += len(data)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            come.is_broken = True
        if come.is_broken or (come.received > MOST_HEAD and not come.has_head):
            self._fail()
            self.close()
        elif come.received > MOST_HEAD + self._most_bytes and not come.ended:
            self._finish(cut=True)

    def connection_lost(self, failure: Exception | None) -> None:
        self._is_open = False
        if self._in.has_head and not self._in.is_framed and failure is None:
            self._finish()
        self._fail()

    # What the parser calls --------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        self._in.is_broken = self._in.is_broken or self._in.ended

    def on_header(self, name: bytes, value: bytes) -> None:
        self._in.is_framed = self._in.is_framed or name.lower() in FRAMING

    def on_headers_complete(self) -> None:
        come = self._in
        if come.ended:
            return
        come.status = self._parser.get_status_code()
        come.has_head = come.status >= 200 or come.status == SWITCHING
        # Where a body is announced that cannot be one, it may follow all the same.
        come.is_last = come.status in BODILESS and come.is_framed

    def on_body(self, body: bytes) -> None:
        come = self._in
        if come.ended:
            return
        come.parts.append(body[: come.remaining])
        if len(body) > come.remaining:
            self._finish(cut=True)
        come.remaining -= len(body)

    def on_message_complete(self) -> None:
        come = self._in
        if come.has_head and not come.ended:
            come.is_last = come.is_last or not self._parser.should_keep_alive()
            self._finish()
        come.is_framed = False

    # ------------------------------------------------------------------------------------------------

    def _finish(self, *, cut: bool = False) -> None:
        """The answer is complete. A request that is still being written when it comes is never completed."""
        come = self._in
        come.ended = True
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(HttpResponse(come.status, b"".join(come.parts), cut))
        is_unsent = self._transport is not None and self._transport.get_write_buffer_size() > 0
        if cut or come.is_last or is_unsent:
            self.close()

    def _fail(self) -> None:
        """No answer will come, unless it is here already."""
        self._in.ended = True
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(NoAnswer(headless=not self._in.has_head))
