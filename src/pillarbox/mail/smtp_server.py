"""One SMTP session, seen from the server (RFC 5321; 3207, 4954, 2920, 1870, 6152, 6531, 2034).

A session reads commands, keeps the envelope and asks a `Desk` what to say to it; the desk decides, the
session only speaks the protocol. Where the desk needs time it returns an awaitable, and the session reads on
when it is done. Answers to pipelined commands leave in one write.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import ssl
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from pillarbox.mail import smtp_answers as say
from pillarbox.mail import smtp_commands as commands
from pillarbox.mail.smtp_answers import Answer
from pillarbox.mail.smtp_commands import NULL, Mail, Path
from pillarbox.mail.smtp_intake import Content, Intake

LONGEST_LINE = 2048
LONGEST_RESPONSE = 12_288
MOST_PENDING = 64 * 1024
GREETING_PAUSE = 0.003
"""Whoever speaks before the greeting does not wait for answers (SMTP-03)."""

SLOW_FROM, CLOSE_FROM = 10, 20
SLOW = 1.0
MOST_LOGIN_FAILURES = 3

COMMAND_SECONDS = 300.0
DATA_SECONDS = 180.0
MESSAGE_SECONDS = 1800.0

Verdict = Answer | Awaitable[Answer]


class Desk(Protocol):
    """Who decides. Every method may answer at once or later."""

    def mail(self, session: Session, mail: Mail) -> Verdict:
        """A sender was named."""

    def recipient(self, session: Session, path: Path) -> Verdict:
        """A recipient was named; a yes puts it among the session's recipients."""

    def message(self, session: Session, content: Content) -> Verdict:
        """The text is complete. A yes says that it is stored for good. The session closes the content."""

    def login(self, session: Session, user: str, password: str) -> Verdict:
        """Credentials were given; a yes makes the session authenticated."""

    def ended(self, session: Session) -> None:
        """The transaction is over, however it ended."""


class House(Protocol):
    """What the session needs of its listener."""

    desk: Desk
    hostname: str
    most_octets: int
    tls: ssl.SSLContext | None
    offers_login: bool
    login_needs_tls: bool
    needs_login: bool
    normalize: bool
    stopping: bool

    def admit(self, session: Session) -> Answer | None:
        """None, or why the session is refused."""

    def left(self, session: Session) -> None:
        """The connection is gone."""

    def may_login(self, session: Session) -> bool:
        """False while its address has failed too often."""

    def login_failed(self, session: Session) -> None:
        """One more failure of its address."""


class Session(asyncio.Protocol):
    """A connection and what was said on it. The desk may keep what it likes in `user` and `notes`."""

    __slots__ = (
        "_busy",
        "_dialog",
        "_errors",
        "_greeted",
        "_greeting",
        "_house",
        "_intake",
        "_loop",
        "_out",
        "_overlong",
        "_paused",
        "_pending",
        "_scanned",
        "_task",
        "_transport",
        "_writable",
        "admitted",
        "deadline",
        "extended",
        "helo",
        "last_deadline",
        "login_failures",
        "notes",
        "peer",
        "recipients",
        "sender",
        "tls",
        "user",
    )

    def __init__(self, house: House) -> None:
        self._house = house
        self._loop = asyncio.get_running_loop()
        self._transport: Any = None
        self._pending = bytearray()
        self._scanned = 0
        self._overlong = False
        self._out: list[bytes] = []
        self._busy = False
        self._paused = False
        self._writable = True
        self._greeted = False
        self._greeting: asyncio.TimerHandle | None = None
        self._intake: Intake | None = None
        self._dialog: Callable[[bytes], None] | None = None
        self._task: asyncio.Task[None] | None = None
        self._errors = 0
        self.admitted = False
        self.deadline = 0.0
        self.last_deadline = 0.0
        self.login_failures = 0
        self.peer = ""
        self.helo: str | None = None
        self.extended = False
        self.tls: tuple[str, str] | None = None
        self.user: Any = None
        self.notes: Any = None
        self.sender: Mail | None = None
        self.recipients: list[Any] = []

    @property
    def protocol(self) -> str:
        """How the message came, in the words of RFC 3848."""
        name = (
            "UTF8SMTP"
            if self.sender is not None and self.sender.utf8
            else "ESMTP"
            if self.extended
            else "SMTP"
        )
        secured = "S" if self.tls and name != "SMTP" else ""
        return f"{name}{secured}{'A' if self.user is not None and name != 'SMTP' else ''}"

    @property
    def is_idle(self) -> bool:
        """True where nothing is lost when the session ends now."""
        return self.sender is None and self._intake is None and not self._busy

    # The connection ----------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        again = self._transport is not None
        self._transport = transport
        self.tls = _tls_of(transport)
        if again:
            return
        peer = transport.get_extra_info("peername")
        self.peer = peer[0] if peer else ""
        self.deadline = self._loop.time() + COMMAND_SECONDS
        refusal = say.STOPPING if self._house.stopping else self._house.admit(self)
        if refusal is not None:
            self.close(refusal)
            return
        self._greeting = self._loop.call_later(GREETING_PAUSE, self._greet)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._greeting is not None:
            self._greeting.cancel()
        if self._intake is not None:
            self._intake.close()
            self._intake = None
        if not self._busy:
            self._forget()
        self._transport = None
        self._house.left(self)

    def pause_writing(self) -> None:
        self._writable = False

    def resume_writing(self) -> None:
        self._writable = True
        self._work()

    def eof_received(self) -> bool:
        return False

    def data_received(self, data: bytes) -> None:
        if not self._greeted:
            self.close(say.EARLY_TALKER)
            return
        if self._intake is not None and not self._busy and not self._pending:
            self._take(data)
        else:
            self._pending += data
            if len(self._pending) > MOST_PENDING and (self._busy or not self._writable):
                self._pause()
        self._work()

    def close(self, last: Answer) -> None:
        """Say a last word and hang up."""
        if self._transport is None or self._transport.is_closing():
            return
        self._out.append(last.wire)
        self._flush()
        self._transport.close()

    def expire(self, now: float) -> None:
        """Called now and then: ends the session when it was silent for too long."""
        if now >= self.deadline and not self._busy:
            self.close(say.TIMED_OUT)

    def _greet(self) -> None:
        self._greeting = None
        self._greeted = True
        self._answer(say.answer(220, None, f"{self._house.hostname} ESMTP ready"))
        self._flush()

    def _pause(self) -> None:
        if not self._paused and self._transport is not None and not self._transport.is_closing():
            self._paused = True
            self._transport.pause_reading()

    def _resume(self) -> None:
        if self._paused and self._transport is not None and not self._transport.is_closing():
            self._paused = False
            self._transport.resume_reading()

    # Commands ----------------------------------------------------------------------------------------

    def _work(self) -> None:
        """Do what has come, until something is missing."""
        while not self._busy and self._pending and self._writable and self._is_open():
            if self._intake is not None:
                data = bytes(self._pending)
                self._clear()
                self._take(data)
                continue
            line = self._line()
            if line is None:
                break
            self._heed(line)
        if not self._busy and len(self._pending) <= MOST_PENDING:
            self._resume()
        self._flush()

    def _is_open(self) -> bool:
        return self._transport is not None and not self._transport.is_closing()

    def _clear(self) -> None:
        self._pending.clear()
        self._scanned = 0

    def _line(self) -> bytes | None:
        """The next line without its end; None while it is not complete. What is too long is thrown away."""
        end = self._pending.find(b"\r\n", self._scanned)
        most = LONGEST_RESPONSE if self._dialog is not None else LONGEST_LINE
        if end < 0:
            if len(self._pending) > most:
                self._overlong = True
                del self._pending[:-1]
            self._scanned = max(0, len(self._pending) - 1)
            return None
        line = bytes(self._pending[:end])
        del self._pending[: end + 2]
        self._scanned = 0
        if self._overlong or len(line) > most:
            self._overlong = False
            self._error(say.RESPONSE_TOO_LONG if self._dialog is not None else say.TOO_LONG)
            self._dialog = None
            return self._line()
        return line

    def _heed(self, line: bytes) -> None:
        self.deadline = self._loop.time() + COMMAND_SECONDS
        if self._house.stopping and self._intake is None:
            self.close(say.STOPPING)
        elif self._dialog is not None:
            self._dialog(line)
        elif b"\n" in line or b"\r" in line or b"\0" in line:
            self._error(say.BAD_LINE)
        else:
            verb, rest = commands.split(line)
            _COMMANDS.get(verb, Session._unknown)(self, rest)

    def _answer(self, said: Answer) -> None:
        self._out.append(said.wire)
        if said.closes and self._transport is not None:
            self._flush()
            self._transport.close()

    def _error(self, said: Answer) -> None:
        """A no that counts: who makes many mistakes is answered slowly, then not at all."""
        self._errors += 1
        if self._errors >= CLOSE_FROM:
            self._answer(say.TOO_MANY_ERRORS)
        elif self._errors > SLOW_FROM:
            self._await(_slowly(said), self._answer)
        else:
            self._answer(said)

    def _flush(self) -> None:
        if self._out and self._transport is not None:
            self._transport.write(self._out[0] if len(self._out) == 1 else b"".join(self._out))
            self._out.clear()

    def _settle(self, verdict: Verdict, then: Callable[[Answer], None]) -> None:
        """Go on with the answer, now or when it is there."""
        if isinstance(verdict, Answer):
            then(verdict)
        else:
            self._await(verdict, then)

    def _await(self, verdict: Awaitable[Answer], then: Callable[[Answer], None]) -> None:
        self._busy = True
        self._flush()
        self._task = self._loop.create_task(self._awaited(verdict, then))

    async def _awaited(self, verdict: Awaitable[Answer], then: Callable[[Answer], None]) -> None:
        try:
            said = await verdict
        except Exception as trouble:
            self._loop.call_exception_handler(
                {"message": "an SMTP command failed", "exception": trouble, "protocol": self}
            )
            said = say.TROUBLE
        self._busy = False
        self._task = None
        self.deadline = self._loop.time() + COMMAND_SECONDS
        then(said)
        if self._transport is None:
            self._forget()
            return
        self._work()

    def _forget(self) -> None:
        """The end of a transaction."""
        if self.sender is not None:
            self.sender = None
            self.recipients = []
            self._house.desk.ended(self)

    # Each command ------------------------------------------------------------------------------------

    def _unknown(self, _: bytes) -> None:
        self._error(say.UNKNOWN)

    def _not_implemented(self, _: bytes) -> None:
        self._error(say.NOT_IMPLEMENTED)

    def _ehlo(self, rest: bytes) -> None:
        self._hello(rest, extended=True)

    def _helo(self, rest: bytes) -> None:
        self._hello(rest, extended=False)

    def _hello(self, rest: bytes, *, extended: bool) -> None:
        name = commands.hello(rest)
        if name is None:
            self._error(say.BAD_ARGUMENT)
            return
        self._forget()
        self.helo, self.extended = name, extended
        house = self._house
        self._answer(say.lines(250, [house.hostname, *self._extensions()] if extended else [house.hostname]))

    def _extensions(self) -> list[str]:
        house = self._house
        offered = ["PIPELINING", f"SIZE {house.most_octets}", "8BITMIME", "SMTPUTF8", "ENHANCEDSTATUSCODES"]
        if house.tls is not None and self.tls is None:
            offered.append("STARTTLS")
        if house.offers_login and (self.tls is not None or not house.login_needs_tls) and self.user is None:
            offered.append("AUTH PLAIN LOGIN")
        return offered

    def _noop(self, _: bytes) -> None:
        self._answer(say.OK)

    def _rset(self, _: bytes) -> None:
        self._forget()
        self._answer(say.OK)

    def _vrfy(self, rest: bytes) -> None:
        if rest.strip():
            self._answer(say.CANNOT_VERIFY)
        else:
            self._error(say.BAD_ARGUMENT)

    def _help(self, _: bytes) -> None:
        self._answer(say.lines(214, ["EHLO HELO MAIL RCPT DATA RSET NOOP QUIT VRFY HELP STARTTLS AUTH"]))

    def _quit(self, _: bytes) -> None:
        self._forget()
        self._answer(say.BYE)

    def _mail(self, rest: bytes) -> None:
        if self.helo is None:
            self._error(say.HELLO_FIRST)
        elif self.sender is not None:
            self._error(say.OUT_OF_ORDER)
        elif self._house.needs_login and self.user is None:
            needs_tls = self.tls is None and self._house.login_needs_tls
            self._error(say.NEEDS_TLS if needs_tls else say.NEEDS_LOGIN)
        else:
            wanted = commands.mail(rest, extended=self.extended)
            if isinstance(wanted, Answer):
                self._error(wanted)
            elif wanted.size is not None and wanted.size > self._house.most_octets:
                self._answer(say.TOO_BIG)
            else:
                self._settle(self._house.desk.mail(self, wanted), lambda said: self._begun(wanted, said))

    def _begun(self, wanted: Mail, said: Answer) -> None:
        if said.is_yes:
            self.sender = wanted
        self._say(said)

    def _rcpt(self, rest: bytes) -> None:
        if self.sender is None:
            self._error(say.OUT_OF_ORDER)
            return
        path = commands.recipient(rest, utf8=self.sender.utf8)
        if isinstance(path, Answer):
            self._error(path)
        else:
            self._settle(self._house.desk.recipient(self, path), self._say)

    def _say(self, said: Answer) -> None:
        if said.is_yes:
            self._answer(said)
        else:
            self._error(said)

    def _data(self, rest: bytes) -> None:
        if rest.strip():
            self._error(say.BAD_ARGUMENT)
        elif self.sender is None:
            self._error(say.OUT_OF_ORDER)
        elif not self.recipients:
            self._error(say.NO_RECIPIENTS)
        elif self._pending:
            self._answer(say.EARLY_TALKER)
        else:
            self._intake = Intake(self._house.most_octets, normalize=self._house.normalize)
            self.deadline = self._loop.time() + DATA_SECONDS
            self.last_deadline = self._loop.time() + MESSAGE_SECONDS
            self._answer(say.GO_AHEAD)

    def _take(self, data: bytes) -> None:
        """More of a message's text."""
        intake = self._intake
        assert intake is not None
        self.deadline = min(self._loop.time() + DATA_SECONDS, self.last_deadline)
        after = intake.feed(data)
        if after is None:
            return
        self._pending += after
        self._intake = None
        refusal = say.TOO_BIG if intake.too_big else say.BARE_LINE_ENDS if intake.bare else None
        if refusal is not None:
            intake.close()
            self._done(refusal)
            return
        content = intake.content()
        self._settle(self._house.desk.message(self, content), lambda said: self._stored(content, said))

    def _stored(self, content: Content, said: Answer) -> None:
        content.close()
        self._done(said)

    def _done(self, said: Answer) -> None:
        self._forget()
        self._answer(said)

    # TLS ---------------------------------------------------------------------------------------------

    def _starttls(self, rest: bytes) -> None:
        context = self._house.tls
        if rest.strip():
            self._error(say.BAD_ARGUMENT)
        elif context is None or self.tls is not None:
            self._error(say.NOT_IMPLEMENTED)
        elif self._pending:
            self._answer(say.EARLY_TALKER)
        else:
            self._busy = True
            self._pause()
            self._out.append(say.START_TLS.wire)
            self._flush()
            self._task = self._loop.create_task(self._upgrade(context))

    async def _upgrade(self, context: ssl.SSLContext) -> None:
        try:
            transport = await self._loop.start_tls(
                self._transport, self, context, server_side=True, ssl_handshake_timeout=30
            )
        except (OSError, TimeoutError, ssl.SSLError):
            transport = None
        self._task = None
        if transport is None:
            if self._transport is not None:
                self._transport.abort()
            return
        # All that was learnt in the clear is forgotten (RFC 3207, 4.2).
        self._transport = transport
        self._paused = False
        self._forget()
        self.helo, self.extended, self.user = None, False, None
        self.tls = _tls_of(transport)
        self._busy = False
        self._work()

    # AUTH --------------------------------------------------------------------------------------------

    def _auth(self, rest: bytes) -> None:
        house = self._house
        if self.helo is None or not self.extended:
            self._error(say.HELLO_FIRST)
        elif not house.offers_login:
            self._error(say.NOT_IMPLEMENTED)
        elif self.tls is None and house.login_needs_tls:
            self._error(say.TLS_FOR_LOGIN)
        elif self.user is not None:
            self._error(say.ALREADY_IN)
        elif self.sender is not None:
            self._error(say.OUT_OF_ORDER)
        elif not house.may_login(self):
            self._answer(say.TOO_MANY_LOGINS)
        else:
            self._begin_login(*commands.split(rest))

    def _begin_login(self, mechanism: bytes, initial: bytes) -> None:
        initial = initial.strip()
        if mechanism == b"PLAIN":
            if initial:
                self._plain(initial)
            else:
                self._prompt(b"", self._plain)
        elif mechanism == b"LOGIN":
            if initial:
                self._login_name(initial)
            else:
                self._prompt(b"Username:", self._login_name)
        else:
            self._error(say.NO_MECHANISM)

    def _prompt(self, text: bytes, then: Callable[[bytes], None]) -> None:
        self._dialog = then
        self._out.append(b"334 " + base64.b64encode(text) + b"\r\n")

    def _response(self, line: bytes) -> bytes | None:
        """What a client answered, or None when it was told what is wrong with it."""
        self._dialog = None
        if line == b"*":
            self._error(say.CANCELED)
            return None
        try:
            return b"" if line == b"=" else base64.b64decode(line, validate=True)
        except (binascii.Error, ValueError):
            self._error(say.BAD_RESPONSE)
            return None

    def _plain(self, line: bytes) -> None:
        found = self._response(line)
        if found is None:
            return
        parts = found.split(b"\0")
        if len(parts) != 3:
            self._error(say.BAD_RESPONSE)
        else:
            self._check(parts[1], parts[2])

    def _login_name(self, line: bytes) -> None:
        name = self._response(line)
        if name is not None:
            self._prompt(b"Password:", lambda password: self._login_password(name, password))

    def _login_password(self, name: bytes, line: bytes) -> None:
        password = self._response(line)
        if password is not None:
            self._check(name, password)

    def _check(self, name: bytes, password: bytes) -> None:
        verdict = self._house.desk.login(
            self, name.decode("utf-8", "replace"), password.decode("utf-8", "replace")
        )
        self._settle(verdict, self._checked)

    def _checked(self, said: Answer) -> None:
        if said.is_yes:
            self._answer(said)
            return
        self.user = None
        self.login_failures += 1
        self._house.login_failed(self)
        if self.login_failures >= MOST_LOGIN_FAILURES:
            said = said._replace(closes=True)
        self._answer(said)


async def _slowly(said: Answer) -> Answer:
    await asyncio.sleep(SLOW)
    return said


def _tls_of(transport: asyncio.BaseTransport) -> tuple[str, str] | None:
    """Version and cipher, where the connection is encrypted."""
    found = transport.get_extra_info("ssl_object")
    if found is None:
        return None
    cipher = found.cipher()
    return found.version() or "TLS", cipher[0] if cipher else ""


_COMMANDS: dict[bytes, Callable[[Session, bytes], None]] = {
    b"EHLO": Session._ehlo,
    b"HELO": Session._helo,
    b"MAIL": Session._mail,
    b"RCPT": Session._rcpt,
    b"DATA": Session._data,
    b"RSET": Session._rset,
    b"NOOP": Session._noop,
    b"QUIT": Session._quit,
    b"VRFY": Session._vrfy,
    b"HELP": Session._help,
    b"STARTTLS": Session._starttls,
    b"AUTH": Session._auth,
    b"EXPN": Session._not_implemented,
    b"TURN": Session._not_implemented,
    b"ETRN": Session._not_implemented,
    b"BDAT": Session._not_implemented,
}

__all__ = ["NULL", "Content", "Desk", "House", "Mail", "Path", "Session"]
