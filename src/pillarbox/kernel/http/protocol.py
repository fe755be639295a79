"""The HTTP/1.1 connection: uvicorn's httptools protocol, made strict and made to speak our error body.

llhttp refuses ambiguous framing by itself (both lengths, repeated lengths, obs-fold, bare LF, NUL). Added
here: limits on the size of the head, and on the time that head and body may take; exactly one Host, and no
chunks in HTTP/1.0 (RFC 9112 sections 3.2 and 6.1). Each has an answer in the contract's shape. Such an answer
is followed by a short half-open wait, so that a reset does not swallow it.
"""

from __future__ import annotations

import asyncio
from asyncio import TimerHandle
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from ssl import SSLContext
from typing import Any
from urllib.parse import unquote

import httptools
import uvicorn
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol
from uvicorn.server import ServerState

from pillarbox.kernel.clock import SystemClock
from pillarbox.kernel.http.body import BodyTooLate
from pillarbox.kernel.http.cycle import Cycle
from pillarbox.kernel.http.rendering import problem_body, standing_headers
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.network.web_address import is_host_header
from pillarbox.kernel.wire.problems import BadRequest, Problem

HEAD_BYTES = 32 * 1024
URL_BYTES = 16 * 1024
KEEP_ALIVE_SECONDS = 75
GRACE_SECONDS = 15
"""How long requests may take to end after a stop."""
BACKLOG = 2048

REMEMBERED_TARGETS = 1024
REMEMBERED_LENGTH = 128

_ids = Ids(SystemClock())


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """How long a client may take over a head and over a body, and how long it may read nothing of an answer.
    For `linger_seconds` the rest of a refused request is read."""

    head_seconds: float = 10.0
    body_seconds: float = 60.0
    reading_seconds: float = 30.0
    linger_seconds: float = 2.0


class Protocol(HttpToolsProtocol):
    """One connection."""

    limits = ConnectionLimits()

    def __init__(
        self,
        config: uvicorn.Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.in_head = False
        self.refused = False
        self.head_bytes = 0
        self.bytes_without_body = 0
        self.hosts = 0
        self.known_host = b""
        self.deadline: TimerHandle | None = None
        self.reading: TimerHandle | None = None
        self.idle_since = 0.0
        self.standing: dict[str, Any] = {}

    # Of the transport ---------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.standing = {
            "type": "http",
            "asgi": {"version": self.asgi_version, "spec_version": "2.3"},
            "http_version": "1.1",
            "server": self.server,
            "client": self.client,
            "scheme": self.scheme,
            "root_path": "",
        }
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._in_time()
        self._stop_watching()
        self._unset_keepalive_if_required()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch_reader(self.transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        self._stop_watching()
        super().resume_writing()

    def data_received(self, data: bytes) -> None:
        if self.refused:
            return
        self.bytes_without_body += len(data)
        try:
            self._feed(data)
        except httptools.HttpParserError as error:
            self._refuse(_reason(error))
            return
        if self.in_head:
            self._more_head(len(data))
        elif self.cycle is not None and self.cycle.more_body:
            self._more_body()

    # Of the parser ------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        self.url = b""
        self.expect_100_continue = False
        self.headers = []
        self.scope = {**self.standing, "headers": self.headers}  # type: ignore[typeddict-item]
        self.in_head = True
        self.head_bytes = 0
        self.hosts = 0

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self.in_head:
            # A trailer must not count as a header (RFC 9110 section 6.5.1), and nothing here needs one.
            return
        name = name.lower()
        if name == b"host":
            self.hosts += 1
            if value != self.known_host:
                if not is_host_header(value.decode("latin-1").strip(" \t")):
                    raise BadRequest("The `Host` header is not the name of a host.")
                self.known_host = value
        elif name == b"expect" and value.lower() == b"100-continue":
            self.expect_100_continue = True
        self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        self.in_head = False
        came, self.bytes_without_body = self.bytes_without_body, 0
        self._in_time()
        if self.parser.should_upgrade():
            if self.parser.get_method() == b"CONNECT":
                raise BadRequest("This server is not a proxy.")
            return
        if came > HEAD_BYTES and self._size_of_headers() > HEAD_BYTES:
            raise BadRequest(f"The request headers are larger than {HEAD_BYTES} bytes.")
        if len(self.url) > URL_BYTES:
            raise BadRequest(f"The request URL is longer than {URL_BYTES} bytes.")
        version = self.parser.get_http_version()
        if version != "1.1":
            self._check_old_version(version)
        elif self.hosts != 1:
            raise BadRequest("The request must have exactly one `Host` header.")
        self._begin(keep_alive=version == "1.1" and self.parser.should_keep_alive())

    def on_body(self, body: bytes) -> None:
        self.bytes_without_body = 0
        cycle = self.cycle
        if cycle.response_complete:
            return
        cycle.body += body
        if len(cycle.body) > HIGH_WATER_LIMIT:
            self.flow.pause_reading()
        cycle.message_event.set()

    def on_message_complete(self) -> None:
        if self.parser.should_upgrade():
            return
        self._in_time()
        self.cycle.more_body = False
        self.cycle.message_event.set()

    # Between two requests -----------------------------------------------------------------------

    def on_response_complete(self) -> None:
        """Go on with the next request of this connection, or begin to wait for one.

        One timer runs as long as the connection lives: to set one for each request costs more than to look
        now and then how long it has been idle.
        """
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self.pipeline:
            self._start_asgi_task(*self.pipeline.pop())
            return
        self.idle_since = self.loop.time()
        if self.timeout_keep_alive_task is None:
            self._look_later(self.timeout_keep_alive)

    def timeout_keep_alive_handler(self) -> None:
        """Close a connection that has been idle long enough; the next answer of a busy one looks again."""
        self.timeout_keep_alive_task = None
        if self.in_head or self.deadline is not None or not self.cycle.response_complete:
            return
        left = self.idle_since + self.timeout_keep_alive - self.loop.time()
        if left > 0:
            self._look_later(left)
        else:
            self._close()

    def _look_later(self, seconds: float) -> None:
        self.timeout_keep_alive_task = self.loop.call_later(seconds, self.timeout_keep_alive_handler)

    # Own ----------------------------------------------------------------------------------------

    def _begin(self, *, keep_alive: bool) -> None:
        """Start the work on a request, or queue it behind the one before it on this connection."""
        scope, url = self.scope, self.url
        scope["method"] = self.parser.get_method().decode("ascii")
        parts = _remembered_target(url) if len(url) <= REMEMBERED_LENGTH else _target(url)
        scope["path"], scope["raw_path"], scope["query_string"] = parts
        before, self.cycle = self.cycle, Cycle(self, keep_alive=keep_alive)
        if before is None or before.response_complete:
            self._start_asgi_task(self.cycle, self.app)
        else:
            self.flow.pause_reading()
            self.pipeline.appendleft((self.cycle, self.app))

    def _start_asgi_task(self, cycle: Any, app: Any) -> None:
        task = self.loop.create_task(cycle.run_asgi(app))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    def _size_of_headers(self) -> int:
        return sum([len(name) + len(value) + 4 for name, value in self.headers])

    def _feed(self, data: bytes) -> None:
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self._without_upgrade(data[upgrade.args[0] :])

    def _without_upgrade(self, rest: bytes) -> None:
        """Take a request that offers an upgrade as if it did not.

        The parser stops after such a head and drops the body; some clients offer h2c with every request
        in clear text, so the head is given to a new parser without the offer (RFC 9110 section 7.8).
        """
        lines = [b"%b %b HTTP/1.1\r\n" % (self.parser.get_method(), self.url)]
        lines += [b"%b: %b\r\n" % pair for pair in self.headers if pair[0] != b"upgrade"]
        self.parser = httptools.HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
        self._feed(b"".join([*lines, b"\r\n", rest]))

    def _check_old_version(self, version: str) -> None:
        if version != "1.0":
            raise BadRequest("The request is not HTTP/1.1.")
        if any(name == b"transfer-encoding" for name, _ in self.headers):
            raise BadRequest("The request has an ambiguous length.")
        self.scope["http_version"] = version

    def _await_head(self) -> None:
        self.deadline = self.loop.call_later(self.limits.head_seconds, self._close)

    def more_time(self, cycle: Cycle) -> None:
        """Give the body of this request all its time again."""
        if cycle is self.cycle and self.deadline is not None:
            self._in_time()
            self.deadline = self.loop.call_later(self.limits.body_seconds, self._refuse, BodyTooLate())

    def _in_time(self) -> None:
        if self.deadline is not None:
            self.deadline.cancel()
            self.deadline = None

    def _watch_reader(self, unread: int) -> None:
        """End the connection when its client reads nothing of a waiting answer for a while."""
        self._stop_watching()
        self.reading = self.loop.call_later(self.limits.reading_seconds, self._still_reading, unread)

    def _still_reading(self, before: int) -> None:
        unread = self.transport.get_write_buffer_size()
        if unread < before:
            self._watch_reader(unread)
        else:
            self.transport.abort()

    def _stop_watching(self) -> None:
        if self.reading is not None:
            self.reading.cancel()
            self.reading = None

    def _close(self) -> None:
        if not self.transport.is_closing():
            self.transport.close()

    def _more_head(self, size: int) -> None:
        """Bound a head that comes in pieces before it is complete, in size and in time."""
        self.head_bytes += size
        if self.head_bytes > HEAD_BYTES + URL_BYTES:
            self._refuse(BadRequest(f"The request headers are larger than {HEAD_BYTES} bytes."))
        elif self.deadline is None:
            self._await_head()

    def _more_body(self) -> None:
        """Bound a body in time, and trailers and chunk extensions, which are no body, in size."""
        if self.bytes_without_body > HEAD_BYTES:
            self._refuse(BadRequest(f"The trailers of the request are larger than {HEAD_BYTES} bytes."))
        elif self.deadline is None:
            # The time that a body waits unread counts too: what has come of it is held meanwhile.
            self.deadline = self.loop.call_later(self.limits.body_seconds, self._refuse, BodyTooLate())

    def _refuse(self, problem: Problem) -> None:
        """Answer what cannot be a request, unless an answer is already on its way, and close."""
        self.refused = True
        self._in_time()
        cycle = self.cycle
        if cycle is not None and not cycle.response_complete and (self.in_head or self.pipeline):
            # An earlier request of this connection is still being answered: its answer is the last.
            cycle.keep_alive = False
            if cycle.more_body:
                cycle.disconnected = True
                cycle.message_event.set()
            self.deadline = self.loop.call_later(self.limits.body_seconds, self._close)
            return
        if cycle is not None and cycle.more_body:
            if cycle.response_started:
                self.transport.close()
                return
            cycle.disconnected = True
            cycle.message_event.set()
        self._answer_and_leave(problem)

    def _answer_and_leave(self, problem: Problem) -> None:
        body = problem_body(problem)
        head = [*self.server_state.default_headers, *standing_headers(_ids.new(), len(body))]
        lines = [STATUS_LINE[problem.status]]
        lines += [b"%b: %b\r\n" % pair for pair in (*head, (b"connection", b"close"))]
        self.transport.write(b"".join([*lines, b"\r\n", body]))
        if self.transport.can_write_eof():
            self.transport.write_eof()
            self.loop.call_later(self.limits.linger_seconds, self._close)
        else:
            self.transport.close()


def _target(url: bytes) -> tuple[str, bytes, bytes]:
    """Return the path as text, the path as it was sent, and the query. A URL with a host in it is refused:
    nobody is served as by a proxy (conventions section 1).

    Of several slashes at its beginning one is left: a client whose base URL ends with a slash sends them, and
    `//name` would mean another host wherever a path is taken for a reference (RFC 3986 section 4.2).
    """
    if not url.startswith((b"/", b"*")):
        raise BadRequest("The request line must have a path, not an absolute URL.")
    parts = httptools.parse_url(url)
    raw = parts.path
    if raw.startswith(b"//"):
        raw = b"/" + raw.lstrip(b"/")
    path = raw.decode("ascii")
    return unquote(path) if "%" in path else path, raw, parts.query or b""


_remembered_target = lru_cache(REMEMBERED_TARGETS)(_target)
"""Most requests have one of a few targets."""


def _reason(error: Exception) -> Problem:
    """Return our own refusal inside a parser callback; BadRequest for an error of llhttp."""
    inner = error.__context__ or error.__cause__
    return inner if isinstance(inner, Problem) else BadRequest("The request is not valid HTTP.")


def server_config(
    app: Any, protocol: type[Protocol] = Protocol, tls: Callable[..., SSLContext] | None = None
) -> uvicorn.Config:
    """Return the configuration of every HTTP server: our protocol, no Server header, no proxy guesses, no
    access log. `tls` makes the context of HTTPS."""
    return uvicorn.Config(
        app,
        interface="asgi3",
        http=protocol,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        backlog=BACKLOG,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=GRACE_SECONDS,
        ssl_context_factory=tls,
    )
