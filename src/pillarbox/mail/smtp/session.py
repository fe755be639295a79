"""One SMTP session, seen from the server (RFC 5321; 3207, 4954, 2920, 1870, 6152, 6531, 2034).

A session reads commands, keeps the envelope and asks a `SessionHandler` for the answers; the handler
decides, the session only speaks the protocol. Where the handler needs time it returns an awaitable, and the
session reads on when it is done. Answers to pipelined commands leave in one write.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable
from functools import lru_cache
from typing import Any, ClassVar, Protocol

from pillarbox.mail.smtp import answers as say
from pillarbox.mail.smtp import commands, login
from pillarbox.mail.smtp.answers import SessionReply, Verdict
from pillarbox.mail.smtp.commands import NULL, MailCommand, Path
from pillarbox.mail.smtp.conversation import ConnectionContext, Conversation, tls_of
from pillarbox.mail.smtp.intake import DataIntake, ReceivedText

LONGEST_LINE = 512
LONGEST_EXTENDED_LINE = 2048
MOST_TOO_LONG = 3
MOST_LOGIN_FAILURES = 3


class SessionHandler(Protocol):
    """Decides the replies. Every method may answer at once or later; an exception becomes 451 4.3.0."""

    def mail(self, session: SmtpSession, mail: MailCommand) -> Verdict:
        """Return the verdict on a sender that was named."""

    def recipient(self, session: SmtpSession, path: Path) -> Verdict:
        """Return the verdict on a recipient that was named; with a positive one the handler has appended one
        entry to `session.recipients`."""

    def message(self, session: SmtpSession, content: ReceivedText) -> Verdict:
        """Return the verdict on the text, which is complete. A positive answer means that it is stored
        durably. The session closes the content.

        By LMTP each recipient gets this answer, or one of its own where the handler gives `each` of them one.
        """

    def login(self, session: SmtpSession, user: str, password: str) -> Verdict:
        """Return the verdict on credentials that were sent; with a positive one the handler has set
        `session.user`. 535 counts as a failure."""

    def ended(self, session: SmtpSession) -> None:
        """Note that the transaction is over, however it ended."""


class ListenerContext(ConnectionContext, Protocol):
    """The services that a session needs of its listener."""

    handler: SessionHandler
    most_octets: int
    most_commands: int
    folder: str | None
    offers_login: bool
    login_needs_tls: bool
    needs_login: bool
    normalize: bool

    @property
    def tls(self) -> ssl.SSLContext | None:
        """For the next handshake; None where there is no certificate."""

    def may_login(self, session: SmtpSession) -> bool:
        """Return False while its address has failed too often."""

    def login_failed(self, session: SmtpSession) -> None:
        """Note one more failure of its address."""


class SmtpSession(Conversation):
    """The state of one SMTP session. `user` and `notes` belong to the handler."""

    __slots__ = (
        "_commands",
        "_exchange",
        "_too_long",
        "extended",
        "helo",
        "login_failures",
        "notes",
        "recipients",
        "sender",
        "user",
    )

    HELP: ClassVar[SessionReply] = say.HELP
    HELLO_FIRST: ClassVar[SessionReply] = say.HELLO_FIRST
    NO_RECIPIENTS: ClassVar[SessionReply] = say.NO_RECIPIENTS
    COMMANDS: ClassVar[dict[bytes, Callable[[Any, bytes], None]]]
    _context: ListenerContext

    def __init__(self, context: ListenerContext) -> None:
        super().__init__(context)
        self._exchange: login.Exchange | None = None
        self._commands = 0
        self._too_long = 0
        self.login_failures = 0
        self.helo: str | None = None
        self.extended = False
        self.user: Any = None
        self.notes: Any = None
        self.sender: MailCommand | None = None
        self.recipients: list[Any] = []

    @property
    def protocol(self) -> str:
        """How the message came, in the words of RFC 3848 and RFC 6531."""
        if not self.extended:
            return "SMTP"
        name = "UTF8SMTP" if self.sender is not None and self.sender.utf8 else "ESMTP"
        return f"{name}{'S' if self.tls else ''}{'A' if self.user is not None else ''}"

    def _longest(self) -> int:
        if self._exchange is not None or self._lines.begins_with(b"AUTH "):
            return login.LONGEST_RESPONSE
        return LONGEST_EXTENDED_LINE if self.extended else LONGEST_LINE

    def _execute(self, line: bytes) -> None:
        context = self._context
        self.deadline = self._loop.time() + context.timeouts.command
        self._commands += 1
        if context.stopping:
            self.close(say.STOPPING)
        elif self._commands > context.most_commands:
            self.close(say.TOO_MANY_COMMANDS)
        elif self._lines.was_too_long:
            self._refuse_long_line()
        elif self._exchange is not None:
            self._go_on(login.next_step(self._exchange, line))
        elif b"\n" in line or b"\r" in line or b"\0" in line:
            self._error(say.BAD_LINE)
        else:
            verb, rest = commands.split(line)
            self.COMMANDS.get(verb, SmtpSession._unknown)(self, rest)

    def _refuse_long_line(self) -> None:
        self._too_long += 1
        said = say.TOO_LONG if self._exchange is None else say.RESPONSE_TOO_LONG
        self._exchange = None
        self._error(said if self._too_long < MOST_TOO_LONG else said._replace(closes=True))

    def _forget(self) -> None:
        """Forget the transaction, which has ended."""
        if self.sender is not None:
            self._context.handler.ended(self)
            self.sender = None
            self.recipients = []

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
        context = self._context
        self._answer(_welcome(context.hostname, self._extensions() if extended else ()))

    def _extensions(self) -> tuple[str, ...]:
        context = self._context
        offered = ["PIPELINING", f"SIZE {context.most_octets}", "8BITMIME", "SMTPUTF8", "ENHANCEDSTATUSCODES"]
        if context.tls is not None and self.tls is None:
            offered.append("STARTTLS")
        if (
            context.offers_login
            and (self.tls is not None or not context.login_needs_tls)
            and self.user is None
        ):
            offered.append("AUTH PLAIN LOGIN")
        return tuple(offered)

    def _noop(self, _: bytes) -> None:
        self._answer(say.OK)

    def _rset(self, rest: bytes) -> None:
        if rest.strip():
            self._error(say.BAD_ARGUMENT)
            return
        self._forget()
        self._answer(say.OK)

    def _vrfy(self, rest: bytes) -> None:
        if rest.strip():
            self._answer(say.CANNOT_VERIFY)
        else:
            self._error(say.BAD_ARGUMENT)

    def _help(self, _: bytes) -> None:
        self._answer(self.HELP)

    def _quit(self, _: bytes) -> None:
        self._forget()
        self._answer(say.BYE)

    def _mail(self, rest: bytes) -> None:
        if self.helo is None:
            self._error(self.HELLO_FIRST)
        elif self.sender is not None:
            self._error(say.OUT_OF_ORDER)
        elif self._context.needs_login and self.user is None:
            needs_tls = self.tls is None and self._context.login_needs_tls
            self._error(say.NEEDS_TLS if needs_tls else say.NEEDS_LOGIN)
        else:
            wanted = commands.mail(rest, extended=self.extended)
            if isinstance(wanted, SessionReply):
                self._error(wanted)
            elif wanted.size is not None and wanted.size > self._context.most_octets:
                self._answer(say.TOO_BIG)
            else:
                self._ask(lambda said: self._begun(wanted, said), self._context.handler.mail, wanted)

    def _begun(self, mail_command: MailCommand, session_reply: SessionReply) -> None:
        if session_reply.is_yes:
            self.sender = mail_command
        self._say(session_reply)

    def _rcpt(self, rest: bytes) -> None:
        if self.sender is None:
            self._error(say.OUT_OF_ORDER)
            return
        path = commands.recipient(rest, utf8=self.sender.utf8)
        if isinstance(path, SessionReply):
            self._error(path)
        else:
            self._ask(self._say, self._context.handler.recipient, path)

    def _say(self, session_reply: SessionReply) -> None:
        """Send the handler's answer; a temporary refusal is not counted as an error of the client."""
        if session_reply.code < 500:
            self._answer(session_reply)
        else:
            self._error(session_reply)

    def _data(self, rest: bytes) -> None:
        if rest.strip():
            self._error(say.BAD_ARGUMENT)
        elif self._lines.pending:
            # DATA is the last of its group (RFC 2920, 3.1): this is a text, also where DATA would be refused,
            # and may not be taken for commands.
            self._answer(say.EARLY_TALKER)
        elif self.sender is None:
            self._error(say.OUT_OF_ORDER)
        elif not self.recipients:
            self._error(self.NO_RECIPIENTS)
        else:
            context = self._context
            self._intake = DataIntake(context.most_octets, normalize=context.normalize, folder=context.folder)
            self._text_since = self._loop.time()
            self._wait(context.timeouts.text)
            self._answer(say.GO_AHEAD)

    def _take(self, data: bytes) -> None:
        """Take more of a message's text."""
        intake = self._intake
        assert intake is not None
        self.deadline = self._loop.time() + self._context.timeouts.text
        after = intake.feed(data)
        if after is None:
            return
        if after:
            self._lines.add(after)
        self._intake = None
        refusal = say.TOO_BIG if intake.too_big else say.BARE_LINE_ENDS if intake.bare else None
        if refusal is not None:
            intake.close()
            self._done(refusal)
            return
        content = intake.content()
        self._ask(lambda said: self._stored(content, said), self._context.handler.message, content)

    def _stored(self, content: ReceivedText, session_reply: SessionReply) -> None:
        content.close()
        self._done(session_reply)

    def _done(self, session_reply: SessionReply) -> None:
        self._forget()
        if session_reply.is_yes:
            self._errors = self._commands = 0
        self._say(session_reply)
        if self._context.stopping:
            self.close(say.STOPPING)

    # TLS ---------------------------------------------------------------------------------------------

    def _starttls(self, rest: bytes) -> None:
        context = self._context.tls
        if rest.strip():
            self._error(say.BAD_ARGUMENT)
        elif context is None or self.tls is not None:
            self._error(say.NOT_IMPLEMENTED)
        elif self._lines.pending:
            # What follows in the clear would be taken for encrypted (SMTP-08).
            self._answer(say.EARLY_TALKER)
        else:
            # All that was learnt in the clear is forgotten (RFC 3207, 4.2).
            self._forget()
            self.helo, self.extended, self.user = None, False, None
            self._out.append(say.START_TLS.wire)
            self._flush()
            self._pause()
            self._busy = True
            self._task = self._loop.create_task(self._upgrade(context))

    async def _upgrade(self, context: ssl.SSLContext) -> None:
        transport: Any = None
        if self._is_open():
            try:
                transport = await self._loop.start_tls(
                    self._transport,
                    self,
                    context,
                    server_side=True,
                    ssl_handshake_timeout=self._context.timeouts.handshake,
                )
            except Exception:
                # Whatever a stranger's handshake fails of, it is the end of this session and of no other.
                transport = None
        self._task = None
        self._busy = False
        if transport is None or self._transport is None:
            if self._transport is not None:
                self._transport.abort()
                self.connection_lost(None)  # not every loop says so after a handshake that failed
            return
        self._transport = transport
        self._paused = False
        self.tls = tls_of(transport)
        self._work()

    # AUTH --------------------------------------------------------------------------------------------

    def _auth(self, rest: bytes) -> None:
        context = self._context
        if self.helo is None or not self.extended:
            self._error(self.HELLO_FIRST)
        elif not context.offers_login:
            self._error(say.NOT_IMPLEMENTED)
        elif self.tls is None and context.login_needs_tls:
            self._error(say.NEEDS_TLS)
        elif self.user is not None:
            self._error(say.ALREADY_IN)
        elif self.sender is not None:
            self._error(say.OUT_OF_ORDER)
        elif not context.may_login(self):
            self._answer(say.TOO_MANY_LOGINS)
        else:
            self._begin_login(*commands.split(rest))

    def _begin_login(self, mechanism: bytes, initial: bytes) -> None:
        kind = login.MECHANISMS.get(mechanism)
        if kind is None:
            self._error(say.NO_MECHANISM)
            return
        exchange = kind()
        initial = initial.strip()
        self._exchange = exchange
        self._go_on(login.next_step(exchange, initial) if initial else exchange.begin())

    def _go_on(self, step: login.Step) -> None:
        if isinstance(step, login.Prompt):
            self._out.append(step.wire)
            return
        self._exchange = None
        if isinstance(step, SessionReply):
            self._error(step)
        else:
            self._ask(self._checked, self._context.handler.login, step.user, step.password)

    def _checked(self, session_reply: SessionReply) -> None:
        if session_reply.code == say.BAD_LOGIN.code:
            self.user = None
            self.login_failures += 1
            self._context.login_failed(self)
            if self.login_failures >= MOST_LOGIN_FAILURES:
                session_reply = session_reply._replace(closes=True)
        self._answer(session_reply)


@lru_cache(maxsize=64)
def _welcome(hostname: str, extensions: tuple[str, ...]) -> SessionReply:
    return say.lines(250, [hostname, *extensions])


SmtpSession.COMMANDS = {
    b"EHLO": SmtpSession._ehlo,
    b"HELO": SmtpSession._helo,
    b"MAIL": SmtpSession._mail,
    b"RCPT": SmtpSession._rcpt,
    b"DATA": SmtpSession._data,
    b"RSET": SmtpSession._rset,
    b"NOOP": SmtpSession._noop,
    b"QUIT": SmtpSession._quit,
    b"VRFY": SmtpSession._vrfy,
    b"HELP": SmtpSession._help,
    b"STARTTLS": SmtpSession._starttls,
    b"AUTH": SmtpSession._auth,
    b"EXPN": SmtpSession._not_implemented,
    b"TURN": SmtpSession._not_implemented,
    b"ETRN": SmtpSession._not_implemented,
    b"BDAT": SmtpSession._not_implemented,
}

__all__ = [
    "NULL",
    "ListenerContext",
    "MailCommand",
    "Path",
    "ReceivedText",
    "SessionHandler",
    "SmtpSession",
    "Verdict",
]
