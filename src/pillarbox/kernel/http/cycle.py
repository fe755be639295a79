"""One request and its answer on a connection: uvicorn's cycle, with head and body in one write.

A write is a system call that wakes the client, and most answers are small: joining the two halves saves a
tenth of the time of a small POST. Nearly all answers declare their length; the pieces of one that does not
are chunked (RFC 9112, 7.1), or end with the connection where the client speaks HTTP/1.0 (6.3).

An application that offers `serve` gets the cycle itself (`request_cycle.RequestCycle`) instead of ASGI's
messages.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, RequestResponseCycle

from pillarbox.kernel.http.body import ClientGone
from pillarbox.kernel.observability.log import get

log = get("http")

JOINED = 64 * 1024
CLOSE = (b"connection", b"close")
WITHOUT_BODY = (204, 304)

Pairs = list[tuple[bytes, bytes]]


class WakeEvent:
    """An `asyncio.Event` for one that waits; most requests never need one."""

    __slots__ = ("_is_set", "_waiter")

    def __init__(self) -> None:
        self._is_set = False
        self._waiter: asyncio.Future[None] | None = None

    def set(self) -> None:
        self._is_set = True
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def clear(self) -> None:
        self._is_set = False

    async def wait(self) -> None:
        while not self._is_set:
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
            self._waiter = None


class Cycle(RequestResponseCycle):
    """Writes the answer; a header that would break out of its line is a programming error."""

    def __init__(self, connection: Any, *, keep_alive: bool) -> None:
        self.scope = connection.scope
        self.transport = connection.transport
        self.flow = connection.flow
        self.logger = connection.logger
        self.default_headers = connection.server_state.default_headers
        self.message_event = WakeEvent()  # type: ignore[assignment]
        self.on_response = connection.on_response_complete
        self.on_more_time = connection.more_time
        self.disconnected = False
        self.keep_alive = keep_alive
        self.waiting_for_100_continue = connection.expect_100_continue
        self.body = bytearray()
        self.more_body = True
        self.response_started = False
        self.response_complete = False
        self.expected_content_length = 0
        self.length_known = True
        self.head = b""

    async def run_asgi(self, app: Any) -> None:
        serve = getattr(app, "serve", None)
        if serve is None:
            await super().run_asgi(app)
            return
        try:
            await serve(self)
        except Exception:
            log.exception("http.answer_failed")
            self.transport.close()
        except BaseException:
            self.transport.close()
            raise
        finally:
            self.on_response = _nothing
            self.on_more_time = _nothing

    @property
    def is_gone(self) -> bool:
        return self.disconnected

    def whole_body(self) -> bytearray | None:
        if self.more_body or self.disconnected:
            return None
        body, self.body = self.body, bytearray()
        return body

    def more_time(self) -> None:
        if self.more_body:
            self.on_more_time(self)

    def respond(self, status: int, lines: bytes, body: bytes) -> bool:
        if self.flow.write_paused or self.disconnected or self.response_started:
            return False
        self.response_started = True
        self.waiting_for_100_continue = False
        self.expected_content_length = len(body)
        end = b"\r\n" if self.keep_alive else b"connection: close\r\n\r\n"
        self.head = b"%b%b%b%b" % (STATUS_LINE[status], _lines_of(self.default_headers), lines, end)
        self._write(body)
        self._finish()
        return True

    async def send(self, message: Any) -> None:
        if self.flow.write_paused and not self.disconnected:
            await self.flow.drain()
        if self.disconnected:
            raise ClientGone
        if message["type"] == "http.response.start":
            self.response_started = True
            self.waiting_for_100_continue = False
            self.head = self._head_of(message["status"], message["headers"])
            return
        more: bool = message.get("more_body", False)
        if self.length_known:
            self._write(message.get("body", b""))
        else:
            self._write_piece(message.get("body", b""), is_last=not more)
        if not more:
            self._finish()

    def _head_of(self, status: int, headers: Iterable[tuple[bytes, bytes]]) -> bytes:
        lines = [STATUS_LINE[status]]
        self.length_known = status in WITHOUT_BODY
        for pair in (*self.default_headers, *headers):
            lines.append(b"%b: %b\r\n" % pair)
            if pair[0] == b"content-length":
                self.expected_content_length = int(pair[1])
                self.length_known = True
            elif pair == CLOSE:
                self.keep_alive = False
        if self.is_chunked:
            lines.append(b"transfer-encoding: chunked\r\n")
        elif not self.length_known:
            self.keep_alive = False
        if not self.keep_alive and CLOSE not in headers:
            lines.append(b"connection: close\r\n")
        head = b"".join(lines)
        if head.count(b"\n") != len(lines) or head.count(b"\r") != len(lines):
            raise RuntimeError("a header of the answer holds a line end")
        return head + b"\r\n"

    def _write(self, body: bytes) -> None:
        if self.scope["method"] == "HEAD":
            body, self.expected_content_length = b"", 0
        self.expected_content_length -= len(body)
        if self.expected_content_length < 0:
            raise RuntimeError("the body of the answer is longer than its length")
        if len(body) > JOINED:
            self.transport.write(self.head)
            self.transport.write(body)
        else:
            self.transport.write(self.head + body)
        self.head = b""

    @property
    def is_chunked(self) -> bool:
        return not self.length_known and self.scope["http_version"] != "1.0"

    def _write_piece(self, body: bytes, *, is_last: bool) -> None:
        """Write a piece of an answer whose total length is not known yet."""
        head, self.head = self.head, b""
        if self.scope["method"] == "HEAD":
            self.transport.write(head)
            return
        if self.is_chunked:
            body = b"%x\r\n%b\r\n" % (len(body), body) if body else b""
            body += b"0\r\n\r\n" if is_last else b""
        self.transport.write(head + body)

    def _finish(self) -> None:
        if self.expected_content_length:
            raise RuntimeError("the body of the answer is shorter than its length")
        self.response_complete = True
        self.message_event.set()
        if not self.keep_alive:
            self.transport.close()
        self.on_response()


def _nothing(*_: object) -> None:
    """Do nothing: after its answer a cycle holds on to its connection no longer."""


_joined: tuple[Pairs, bytes] = ([], b"")


def _lines_of(headers: Pairs) -> bytes:
    """Return the server's own headers as lines; uvicorn makes a new list of them every second."""
    global _joined
    if _joined[0] is not headers:
        _joined = headers, b"".join([b"%b: %b\r\n" % pair for pair in headers])
    return _joined[1]
