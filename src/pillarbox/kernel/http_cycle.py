"""One request and its answer on a connection: uvicorn's cycle, with head and body in one write.

A write is a system call that wakes the client, and most answers are small: joining the two halves saves a
tenth of the time of a small POST. Answers always declare their length (`rendering.answer_headers`), so
nothing is chunked.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, RequestResponseCycle

JOINED = 64 * 1024
CLOSE = (b"connection", b"close")


class Cycle(RequestResponseCycle):
    """Writes the answer; a header that would break out of its line is a programming error."""

    head = b""

    async def send(self, message: Any) -> None:
        if self.flow.write_paused and not self.disconnected:
            await self.flow.drain()
        if self.disconnected:
            return
        if message["type"] == "http.response.start":
            self.response_started = True
            self.waiting_for_100_continue = False
            self.head = self._head_of(message["status"], message["headers"])
            return
        more: bool = message.get("more_body", False)
        self._write(message.get("body", b""))
        if not more:
            self._finish()

    def _head_of(self, status: int, headers: Iterable[tuple[bytes, bytes]]) -> bytes:
        lines = [STATUS_LINE[status]]
        for pair in (*self.default_headers, *headers):
            lines.append(b"%b: %b\r\n" % pair)
            if pair[0] == b"content-length":
                self.expected_content_length = int(pair[1])
            elif pair == CLOSE:
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

    def _finish(self) -> None:
        if self.expected_content_length:
            raise RuntimeError("the body of the answer is shorter than its length")
        self.response_complete = True
        self.message_event.set()
        if not self.keep_alive:
            self.transport.close()
        self.on_response()
