"""One HTTP/1.1 connection to a server: a request goes out, its answer comes in, then the next one.

The answer is read by httptools (the parser of Node.js, which parses our own requests too), as leniently as
clients usually do: a bare line feed or a blank in a header is no failure. What counts is where the answer
ends (RFC 9112, 6.3): an interim answer is none, and what a server sends behind its answer is not read and
ends the connection, so it is never taken for the next answer. A body behind a status that has none (204, 304)
is such a thing: the answer stands.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import cast

import httptools

from pillarbox.kernel.network.fetch_result import REDIRECTS, HttpAnswer, HttpLimits

MOST_HEAD = 32 * 1024
"""Bytes that the head of an answer may have, with those of interim answers before it."""

MOST_FRAMING = 8
"""Bytes around a body for each of its bytes: a chunk of one byte has five. This bounds trailers."""

ONE_WRITE = 64 * 1024
"""A body up to this size goes out together with its head; a larger one is not copied."""

SWITCHING = 101
BODILESS = frozenset({204, 304})


class NoAnswer(Exception):  # noqa: N818 - it is what became of the request
    """The connection ended, or what came is not HTTP. `headless`: not even the head of an answer came."""

    def __init__(self, *, headless: bool) -> None:
        super().__init__("no complete answer")
        self.headless = headless


@dataclass(slots=True)
class _IncomingResponse:
    """An answer while it is received. `remaining` is how many bytes of its body may still come. `is_framed`:
    its head gives the length of the body. `ended`: it is complete, or never will be."""

    limits: HttpLimits
    remaining: int
    received: int = 0
    body_received: int = 0
    announced: int = 0
    status: int = 0
    headers: list[tuple[bytes, bytes]] = field(default_factory=list)
    body: bytearray = field(default_factory=bytearray)
    has_head: bool = False
    is_framed: bool = False
    is_last: bool = False
    is_broken: bool = False
    ended: bool = False


NOTHING_WANTED = HttpLimits(max_bytes=0)


class HttpConnection(asyncio.Protocol):
    """A connection that reads no more of each answer than the limits of its request say."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._parser.set_dangerous_leniencies(
            lenient_headers=True, lenient_optional_cr_before_lf=True, lenient_spaces_after_chunk_size=True
        )
        self._answer: asyncio.Future[HttpAnswer] | None = None
        self._is_open = False
        self._in = _IncomingResponse(NOTHING_WANTED, 0)

    @property
    def is_free(self) -> bool:
        """Whether the connection lives, and the last answer and nothing else has come."""
        return self._is_open and self._answer is None

    async def ask(self, head: bytes, body: bytes, limits: HttpLimits) -> HttpAnswer:
        """Return the answer to a whole request; raises NoAnswer. A canceled caller ends the connection.

        The answer is cut where its body has more than `max_bytes`: at its head where a whole one is wanted
        and the head announces more. Where redirects are followed, the body of one is not read.
        """
        if self._transport is None or not self.is_free:
            raise NoAnswer(headless=True)
        self._in = _IncomingResponse(limits, limits.max_bytes)
        answer: asyncio.Future[HttpAnswer] = asyncio.get_running_loop().create_future()
        self._answer = answer
        if len(body) <= ONE_WRITE:
            self._transport.write(head + body)
        else:
            self._transport.write(head)
            self._transport.write(body)
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
        elif come.received > MOST_HEAD + MOST_FRAMING * come.body_received and not come.ended:
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
        come = self._in
        if come.has_head:
            return  # a trailer, or the head of an answer that nobody asked for
        come.headers.append((name, value))
        lower = name.lower()
        if lower == b"content-length":
            come.is_framed = True
            come.announced = int(value)
        elif lower == b"transfer-encoding":
            come.is_framed = come.is_framed or value.lower().rpartition(b",")[2].strip() == b"chunked"

    def on_headers_complete(self) -> None:
        come = self._in
        if come.ended:
            return
        come.status = self._parser.get_status_code()
        come.has_head = come.status >= 200 or come.status == SWITCHING
        # Where a body is announced that cannot be one, it may follow all the same.
        come.is_last = come.status in BODILESS and come.is_framed
        if not come.has_head:
            come.headers.clear()
            come.announced = 0
        elif come.limits.is_head_enough or (come.limits.redirects and come.status in REDIRECTS):
            self._finish(closing=True)
        elif come.announced > come.limits.max_bytes and not come.limits.cut and not come.is_last:
            self._finish(cut=True)

    def on_body(self, body: bytes) -> None:
        come = self._in
        if come.ended:
            return
        come.body_received += len(body)
        come.body += body[: come.remaining]
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

    def _finish(self, *, cut: bool = False, closing: bool = False) -> None:
        """Finish the request: the answer is complete. A request that is still being written when it comes is
        never completed."""
        come = self._in
        come.ended = True
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(HttpAnswer(come.status, come.headers, bytes(come.body), cut))
        is_unsent = self._transport is not None and self._transport.get_write_buffer_size() > 0
        if cut or closing or come.is_last or is_unsent:
            self.close()

    def _fail(self) -> None:
        """Fail the request, unless its answer is here already: none will come."""
        self._in.ended = True
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(NoAnswer(headless=not self._in.has_head))
