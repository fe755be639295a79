"""The input and output of one SMTP connection: commands in order, within bounds; replies gathered into few
writes; timeouts. `session` decides what the replies are.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Protocol

from pillarbox.mail.smtp import answers as say
from pillarbox.mail.smtp.answers import SessionReply, Verdict
from pillarbox.mail.smtp.intake import DataIntake
from pillarbox.mail.smtp.lines import CRLF, LineBuffer

MOST_PENDING = 64 * 1024
"""Octets that wait while a command is carried out; then reading stops."""

SHORT = 512
"""A line of fewer octets is never too long."""

MOST_ANSWERS = 64
"""Answers that are gathered before they are written."""

SLOW_FROM, CLOSE_FROM = 10, 20


@dataclass(frozen=True, slots=True)
class SessionTimeouts:
    """The timeouts of a session in seconds (RFC 5321 4.5.3.2.7; standards, section 0)."""

    greeting: float = 0.001
    """A client that sends anything before the greeting does not wait for answers (SMTP-03)."""
    handshake: float = 30.0
    command: float = 300.0
    text: float = 180.0
    """For the next piece of a message's text …"""
    message: float = 1800.0
    """… and for all of it; …"""
    free: float = 60.0
    """… after so long …"""
    octets_per_second: float = 500.0
    """… it must have come at this rate."""
    slow: float = 1.0
    """The delay of replies to a client that makes many errors."""
    last_word: float = 20.0
    """Until a client has read the last reply."""
    look_every: float = 1.0


class ConnectionContext(Protocol):
    """The services that a connection needs of its listener."""

    hostname: str
    timeouts: SessionTimeouts
    stopping: bool

    def greet_later(self, session: Conversation) -> None:
        """Have the session greeted when its client has been silent for as long as it has to."""

    def admit(self, session: Conversation) -> bool:
        """Take the session in, or refuse it."""

    def left(self, session: Conversation) -> None:
        """Note that the connection is gone."""


class Conversation(asyncio.Protocol, ABC):
    """A connection on which one command is carried out after the other."""

    __slots__ = (
        "_at_end",
        "_busy",
        "_context",
        "_errors",
        "_greeted",
        "_intake",
        "_lines",
        "_loop",
        "_out",
        "_paused",
        "_task",
        "_text_since",
        "_transport",
        "_writable",
        "admitted",
        "deadline",
        "peer",
        "tls",
    )

    SPEAKS: ClassVar[str] = "ESMTP"
    """The protocol that the greeting names."""

    def __init__(self, context: ConnectionContext) -> None:
        self._context = context
        self._loop = asyncio.get_running_loop()
        self._transport: Any = None
        self._lines = LineBuffer()
        self._out: list[bytes] = []
        self._busy = False
        self._paused = False
        self._writable = True
        self._at_end = False
        self._greeted = False
        self._intake: DataIntake | None = None
        self._text_since = 0.0
        self._task: asyncio.Task[None] | None = None
        self._errors = 0
        self.admitted = False
        self.deadline = 0.0
        self.peer = ""
        self.tls: tuple[str, str] | None = None

    @property
    def is_idle(self) -> bool:
        """True where no message text is being received and no command is being carried out."""
        return self._intake is None and not self._busy

    # What the session does -------------------------------------------------------------------------

    @abstractmethod
    def _execute(self, line: bytes) -> None:
        """Carry out a line."""

    @abstractmethod
    def _take(self, data: bytes) -> None:
        """Take more of a message's text."""

    @abstractmethod
    def _longest(self) -> int:
        """Return how many octets the next line may have."""

    @abstractmethod
    def _forget(self) -> None:
        """Forget the transaction, which has ended."""

    # The connection --------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        context = self._context
        self._transport = transport
        peer = transport.get_extra_info("peername")
        self.peer = peer[0] if peer else ""
        self._wait(context.timeouts.command)
        self.tls = tls_of(transport)
        if context.stopping:
            self.close(say.STOPPING)
        elif not self.admitted and not context.admit(self):
            self.close(say.TOO_MANY_SESSIONS)
        else:
            context.greet_later(self)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._transport is None:
            return
        if self._intake is not None:
            self._intake.close()
            self._intake = None
        if not self._busy:
            self._forget()
        self._lines.clear()
        self._transport = None
        self._context.left(self)

    def pause_writing(self) -> None:
        self._writable = False

    def resume_writing(self) -> None:
        self._writable = True
        self._work()

    def eof_received(self) -> bool:
        """Return whether a client that has closed its side still gets the replies to what it sent."""
        self._at_end = True
        return self._busy and self.tls is None

    def data_received(self, data: bytes) -> None:
        if not self._greeted:
            self.close(say.EARLY_TALKER)
            return
        lines = self._lines
        if self._busy or lines.pending:
            lines.add(data)
            if len(lines.pending) > MOST_PENDING and (self._busy or not self._writable):
                self._pause()
        elif self._intake is not None:
            self._take(data)
        elif 0 <= data.find(CRLF) == len(data) - 2 < SHORT and self._writable and self._is_open():
            # One line and nothing else, as most clients send it: it need not be gathered first.
            lines.was_too_long = False
            self._execute(data[:-2])
        else:
            lines.add(data)
        self._work()

    def greet(self) -> None:
        """Send the greeting after the client has been silent long enough, unless the session has ended."""
        if self._is_open():
            self._greeted = True
            self._answer(_ready(self._context.hostname, self.SPEAKS))
            self._flush()

    def close(self, last: SessionReply) -> None:
        """Send a last reply and close the connection."""
        if not self._is_open():
            return
        self._out.append(last.wire)
        self._hang_up()

    def expire(self, now: float) -> None:
        """End a session that was silent or too slow for too long; called regularly."""
        if self._transport is None:
            return
        if self._transport.is_closing():
            if now >= self.deadline:
                self._transport.abort()
        elif not self._busy and (now >= self.deadline or self._is_too_slow(now)):
            self.close(say.TIMED_OUT)

    def _is_too_slow(self, now: float) -> bool:
        if self._intake is None:
            return False
        timeouts, since = self._context.timeouts, now - self._text_since
        least = since * timeouts.octets_per_second if since > timeouts.free else 0
        return since > timeouts.message or self._intake.total < least

    def _hang_up(self) -> None:
        self._flush()
        self._wait(self._context.timeouts.last_word)
        self._transport.close()

    def _wait(self, seconds: float) -> None:
        self.deadline = self._loop.time() + seconds

    def _pause(self) -> None:
        if not self._paused and self._is_open():
            self._paused = True
            self._transport.pause_reading()

    def _resume(self) -> None:
        if self._paused and self._is_open():
            self._paused = False
            self._transport.resume_reading()

    def _is_open(self) -> bool:
        return self._transport is not None and not self._transport.is_closing()

    # In and out ------------------------------------------------------------------------------------

    def _work(self) -> None:
        """Carry out what has arrived, until more input is needed."""
        lines = self._lines
        while lines.pending and not self._busy and self._writable and self._is_open():
            if self._intake is not None:
                self._take(lines.rest())
                continue
            line = lines.next(self._longest())
            if line is None:
                break
            self._execute(line)
            if len(self._out) >= MOST_ANSWERS:
                self._flush()
        if self._out:
            self._flush()
        if not self._busy:
            if self._paused and len(lines.pending) <= MOST_PENDING:
                self._resume()
            if self._at_end and self._is_open():
                self._transport.close()

    def _answer(self, session_reply: SessionReply) -> None:
        self._out.append(session_reply.wire)
        if session_reply.closes and self._is_open():
            self._hang_up()

    def _error(self, session_reply: SessionReply) -> None:
        """Send a refusal and count it: a client with many errors is answered slowly, then disconnected."""
        self._errors += 1
        if session_reply.closes or self._errors < SLOW_FROM:
            self._answer(session_reply)
        elif self._errors >= CLOSE_FROM:
            self._answer(say.TOO_MANY_ERRORS)
        else:
            self._await(self._slowly(session_reply), self._answer)

    async def _slowly(self, session_reply: SessionReply) -> SessionReply:
        await asyncio.sleep(self._context.timeouts.slow)
        return session_reply

    def _flush(self) -> None:
        if self._out and self._transport is not None:
            self._transport.write(self._out[0] if len(self._out) == 1 else b"".join(self._out))
            self._out.clear()

    def _ask(
        self, then: Callable[[SessionReply], None], handler: Callable[..., Verdict], *args: object
    ) -> None:
        """Call the handler, and continue with its answer, now or when it is there."""
        try:
            verdict = handler(self, *args)
        except Exception as trouble:
            verdict = self._troubled(trouble)
        if isinstance(verdict, SessionReply):
            then(verdict)
        else:
            self._await(verdict, then)

    def _await(self, verdict: Awaitable[SessionReply], then: Callable[[SessionReply], None]) -> None:
        self._busy = True
        self._flush()
        self._task = self._loop.create_task(self._awaited(verdict, then))

    async def _awaited(self, verdict: Awaitable[SessionReply], then: Callable[[SessionReply], None]) -> None:
        try:
            said = await verdict
        except Exception as trouble:
            said = self._troubled(trouble)
        self._busy = False
        self._task = None
        self._wait(self._context.timeouts.command)
        then(said)
        if self._transport is None:
            self._forget()
        else:
            self._work()

    def _troubled(self, trouble: Exception) -> SessionReply:
        self._loop.call_exception_handler({"message": "an SMTP command failed", "exception": trouble})
        return say.TROUBLE


@lru_cache(maxsize=16)
def _ready(hostname: str, protocol: str) -> SessionReply:
    return say.answer(220, None, f"{hostname} {protocol} ready")


def tls_of(transport: asyncio.BaseTransport) -> tuple[str, str] | None:
    """Return the version and cipher, where the connection is encrypted."""
    found = transport.get_extra_info("ssl_object")
    if found is None:
        return None
    cipher = found.cipher()
    return found.version() or "TLS", cipher[0] if cipher else ""
