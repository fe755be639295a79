"""One SMTP connection as lines out and replies in, with time-outs and flow control.

The wire never raises for what the network or the peer does: from the moment something ends it, every
wait answers at once with one reply of our own (421) that says what happened. It counts the answers
that are owed, so an answer that nobody asked for can never be taken for the answer to a later command.
"""

from __future__ import annotations

import asyncio
import errno
import math
import ssl
from collections import deque
from dataclasses import dataclass
from typing import cast

from pillarbox.mail.smtp.reply import ReplyReader, SmtpReply, our_reply
from pillarbox.mail.smtp.tls import TlsInfo, info_of

OUT_OF_RESOURCES = frozenset((errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM))
"""Errors of a socket that say that this machine, or this process, can open no more of them right now."""

FLUSH_INTERVAL = 0.002
"""Seconds between two looks at a buffer below TLS that is to be empty."""


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds per state (RFC 5321, 4.5.3.2); `total` and `rate` bound one transaction as a whole."""

    connect: float = 30
    banner: float = 300
    hello: float = 300
    mail: float = 300
    rcpt: float = 300
    data: float = 120
    block: float = 180
    final: float = 600
    quit: float = 5
    total: float = 900
    rate: float = 10_000

    def budget(self, size: int) -> float:
        """Return how long a transaction with `size` bytes may take before its final dot (OUT-18)."""
        return self.total + size / self.rate


class Wire(asyncio.Protocol):
    """The socket's side of a session; one task at a time talks through it."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._socket_transport: asyncio.Transport | None = None
        """The transport below TLS; without TLS the same as `_transport`."""
        self._reader = ReplyReader()
        self._replies: deque[SmtpReply] = deque()
        self._owed = 1  # the banner
        self._failure: SmtpReply | None = None
        self._paused = False
        self._waiter: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._deadline = math.inf
        self._budget_end = math.inf
        self._moved_at = self._loop.time()

    @property
    def failure(self) -> SmtpReply | None:
        """Return the failure that ended this connection, or None while it lives."""
        return self._failure

    @property
    def has_reply(self) -> bool:
        """Whether an answer can be read without waiting."""
        return bool(self._replies)

    @property
    def is_idle(self) -> bool:
        """Whether the connection lives, owes no answer and has said nothing of its own accord."""
        return self._failure is None and not self._owed and not self._reader.has_part

    @property
    def silent_for(self) -> float:
        """Seconds since the peer has said or taken anything."""
        return self._loop.time() - self._moved_at

    def allow(self, seconds: float) -> None:
        """Start a budget: from now on, waits end when it is used up, whatever their own time-out."""
        self._budget_end = self._loop.time() + seconds

    def write(self, data: bytes | memoryview, answers: int) -> None:
        """Hand over bytes that the peer owes `answers` replies to."""
        self._owed += answers
        if not self._paused:
            self._moved_at = self._loop.time()
        if self._transport is not None and self._failure is None:
            self._transport.write(data)

    async def reply(self, seconds: float, *, within_budget: bool = True) -> SmtpReply:
        """Return the next answer, or after `seconds` (or when the connection ends) the reply that says so."""
        if not self._replies:
            self._set_deadline(seconds, within_budget)
            while not self._replies:
                if self._failure is not None:
                    return self._failure
                await self._wait()
        self._owed -= 1
        return self._replies.popleft()

    @property
    def unsent(self) -> int:
        """Octets, encrypted or not, that the kernel has not taken yet."""
        transports = {self._transport, self._socket_transport} - {None}
        return sum(transport.get_write_buffer_size() for transport in transports if transport is not None)

    async def drain(self, seconds: float) -> None:
        """Return when more may be written, an answer came, or the connection ended.

        In clear the kernel has everything then. Under TLS the last block that was encrypted may still wait.
        """
        self._set_deadline(seconds, True)
        while self._paused and self._failure is None and not self._replies:
            await self._wait()

    async def flush(self, seconds: float) -> None:
        """Return when the kernel has taken all that was written, an answer came, or the connection ended."""
        await self.drain(seconds)
        last = self.unsent
        while last and self._failure is None and not self._replies:
            # No callback tells when the buffer below TLS is empty.
            check = self._loop.call_later(FLUSH_INTERVAL, self._wake)
            try:
                await self._wait()
            finally:
                check.cancel()
            last = self._progress_since(last, seconds)

    def _progress_since(self, last: int, seconds: float) -> int:
        """Return the octets that are unsent now; fewer than `last` count as a sign of life of the peer."""
        unsent = self.unsent
        if unsent < last:
            self._moved_at = self._loop.time()
            self._set_deadline(seconds, True)
        return unsent

    async def start_tls(
        self, context: ssl.SSLContext, name: str, seconds: float, *, verified: bool
    ) -> TlsInfo | str:
        """Encrypt the connection, or end it and say in words why that failed.

        Bytes that came in clear beyond the last answer end it too: they would be taken for answers
        of the encrypted session (RFC 3207, 6; CVE-2021-38371).
        """
        if self._transport is None or self._failure is not None:
            return self._failure.text if self._failure is not None else "there is no connection"
        if self._replies or self._reader.has_part:
            self.end("the server sent more than its answer before the handshake")
            return "the server sent more than its answer before the handshake"
        try:
            transport = await self._loop.start_tls(
                self._transport,
                self,
                context,
                server_hostname=name,
                ssl_handshake_timeout=seconds,
                ssl_shutdown_timeout=2.0,
            )
        except (OSError, ValueError) as error:
            reason = _tls_reason(error)
            self.end(f"the TLS handshake failed: {reason}")
            return reason
        if transport is None or self._failure is not None:
            self.end("the connection was lost in the TLS handshake")
            return "the connection was lost"
        self._reader = ReplyReader()
        self._use(transport)
        return info_of(cast(ssl.SSLObject, transport.get_extra_info("ssl_object")), verified)

    def close(self) -> None:
        """Send what is written, then close; no answer is read any more."""
        self._fail(our_reply(421, "4.4.2", "the connection was closed"), abort=False)

    def end(self, reason: str) -> None:
        """Close at once and drop what is not sent yet."""
        self._fail(our_reply(421, "4.4.2", reason))

    # What the event loop calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._use(cast(asyncio.Transport, transport))
        if self._failure is not None:
            transport.close()

    def data_received(self, data: bytes) -> None:
        self._moved_at = self._loop.time()
        fault = self._reader.feed(data, self._replies)
        if len(self._replies) > self._owed:
            surplus = self._replies[self._owed]
            while len(self._replies) > self._owed:
                self._replies.pop()
            # A server that gets tired of an idle connection may say so (RFC 5321, 3.8).
            tired = surplus.code == 421
            self._fail(surplus if tired else our_reply(421, "4.5.0", f"an answer to nothing: {surplus}"))
        elif fault is not None:
            self._fail(our_reply(421, "4.5.0", fault))
        elif self._replies:
            self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        self._fail(our_reply(421, "4.4.2", "the connection was lost"))
        self._transport = self._socket_transport = None

    def pause_writing(self) -> None:
        self._paused = True

    def resume_writing(self) -> None:
        self._moved_at = self._loop.time()
        self._paused = False
        self._wake()

    # Waiting. One timer per connection that is moved only when it rings too early: time-outs are
    # minutes, answers take milliseconds.

    def _use(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        if self._socket_transport is None:
            self._socket_transport = transport
        # The lowest marks that work: `drain` returns when the buffer is empty. Not zero: with both marks at
        # zero the TLS layers of asyncio and uvloop pause and resume in turn at every write, and a drain of an
        # empty buffer may wait for ever.
        transport.set_write_buffer_limits(high=1, low=0)

    def _set_deadline(self, seconds: float, within_budget: bool) -> None:
        self._deadline = self._loop.time() + seconds
        if within_budget and self._budget_end < self._deadline:
            self._deadline = self._budget_end

    async def _wait(self) -> None:
        self._waiter = self._loop.create_future()
        if self._timer is not None and self._timer.when() > self._deadline:
            self._timer.cancel()
            self._timer = None
        if self._timer is None:
            self._timer = self._loop.call_at(self._deadline, self._ring)
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _ring(self) -> None:
        self._timer = None
        if self._waiter is None:
            return
        if self._loop.time() < self._deadline:
            self._timer = self._loop.call_at(self._deadline, self._ring)
        else:
            self._fail(our_reply(421, "4.4.2", "the server did not answer in time"))

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _fail(self, reply: SmtpReply, *, abort: bool = True) -> None:
        if self._failure is None:
            self._failure = reply
            if self._transport is not None:
                if abort:
                    self._transport.abort()
                else:
                    self._transport.close()
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
        self._wake()


def _tls_reason(error: Exception) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the certificate is not valid: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        return (error.reason or str(error)).replace("_", " ").lower()
    if isinstance(error, TimeoutError):
        return "it took too long"
    if isinstance(error, ValueError):
        return "the name of the server is not usable"
    return "the connection was lost"
