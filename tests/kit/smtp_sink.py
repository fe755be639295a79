"""A scripted SMTP server for tests: it listens on a free loopback port, in the test's own event loop.

Without a script it is a well-behaved server that accepts everything and keeps it:

    async with Sink() as sink:
        ...                                     # send to ("127.0.0.1", sink.port)
        [mail] = await sink.messages(1)         # waits until one has arrived
        assert mail.recipients == ["ann@example.test"]
        assert mail.content == b"Subject: x\r\n\r\nbody\r\n"     # as sent, un-dot-stuffed

`script` says what it does instead, per command, in order; after the last step `then` is repeated for
ever, or without `then` the usual behaviour returns:

    sink.script("RCPT", "452 4.2.2 mailbox full", then="250 2.1.5 ok")
    sink.script("RCPT", "250 2.1.5 ok", "550 5.1.1 no such user", "421 4.7.0 bye")

Commands: `CONNECT` (the banner), `EHLO`, `HELO`, `STARTTLS`, `AUTH`, `MAIL`, `RCPT`, `DATA`, `BODY` (the
first line of the content has come; usually nothing is said here), `DOT` (the answer to the final dot),
`RSET`, `NOOP`, `QUIT`. A step is one of

- a text: the reply; lines of a multi-line reply are separated by newlines (codes and CRLF are put in
  where they are missing);
- bytes: written exactly as they are (garbage, early answers, half a line);
- `DROP`: reset the connection; `CLOSE`: end it in order; `SILENCE`: never answer this command;
- `USUAL`: what an unscripted sink does;
- an `asyncio.Event`: wait until the test sets it, then go on with the next part;
- a callable `(session, argument) -> step`;
- a tuple of steps, done one after the other: `("421 4.3.2 shutting down", CLOSE)`.

A scripted reply has its meaning: a 2xx to RCPT accepts, a 354 to DATA reads the content (also when no
recipient was accepted), a 220 to STARTTLS begins the handshake (`tls=` must be given).
"""

from __future__ import annotations

import asyncio
import base64
import re
import ssl
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from types import TracebackType
from typing import Self

import trustme

PATIENCE = 5.0
DEFAULT_EXTENSIONS = ("PIPELINING", "SIZE 41943040", "8BITMIME", "SMTPUTF8", "ENHANCEDSTATUSCODES")


class Act(Enum):
    """Steps that are no reply."""

    DROP = "drop"
    CLOSE = "close"
    SILENCE = "silence"
    USUAL = "usual"


DROP, CLOSE, SILENCE, USUAL = Act.DROP, Act.CLOSE, Act.SILENCE, Act.USUAL


class Ended(Exception):  # noqa: N818 - how a session leaves its loop
    """The session is over."""


@dataclass
class Message:
    """One accepted mail (the sink answered 2xx to the dot), exactly as received."""

    mail_from: str
    mail_parameters: list[str]
    recipients: list[str]
    content: bytes
    session: Session
    began: float = 0.0
    """When its MAIL came, by the clock of the event loop."""


@dataclass
class Session:
    """One connection: what was said, and the state of the current transaction."""

    number: int
    hello: str = ""
    is_encrypted: bool = False
    tls_version: str = ""
    server_name: str | None = None
    login: tuple[str, str] | None = None
    commands: list[str] = field(default_factory=list)
    """Every command line, in order; the content of mails is not in here."""
    mail_from: str | None = None
    mail_parameters: list[str] = field(default_factory=list)
    recipients: list[str] = field(default_factory=list)
    mail_at: float = 0.0
    messages: list[Message] = field(default_factory=list)
    refused: list[bytes] = field(default_factory=list)
    """Contents whose dot arrived but was not answered with 2xx."""
    unfinished: list[bytes] = field(default_factory=list)
    """Contents that ended without a dot."""
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def verbs(self) -> list[str]:
        return [line.split(" ")[0].upper() for line in self.commands]


@dataclass
class Script:
    """The steps that are left for one command."""

    steps: deque[object]
    then: object

    def next(self) -> object:
        return self.steps.popleft() if self.steps else self.then


class TlsAuthority:
    """A throw-away authority with a server certificate for `names`; `trust` is a client's context, `pem` the
    server's key with its certificate."""

    def __init__(self, *names: str) -> None:
        self._ca = trustme.CA()
        self.server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        issued = self._ca.issue_cert(*(names or ("mx.sink.test", "127.0.0.1")))
        issued.configure_cert(self.server)
        self.pem = issued.private_key_and_cert_chain_pem.bytes()

    def trust(self) -> ssl.SSLContext:
        context = ssl.create_default_context()
        self._ca.configure_trust(context)
        return context


class Sink:
    """The server. `received` and `sessions` are what happened so far; the waiters wait for more."""

    def __init__(
        self,
        *,
        extensions: tuple[str, ...] = DEFAULT_EXTENSIONS,
        tls: ssl.SSLContext | None = None,
        implicit_tls: bool = False,
        users: dict[str, str] | None = None,
        host: str = "127.0.0.1",
        name: str = "mx.sink.test",
    ) -> None:
        self.extensions = extensions
        self.name = name
        self.host = host
        self.port = 0
        self.received: list[Message] = []
        self.sessions: list[Session] = []
        self._tls = tls
        self._implicit_tls = implicit_tls
        self._users = users
        self._scripts: dict[str, Script] = {}
        self._changed = asyncio.Condition()
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        if tls is not None:
            tls.sni_callback = self._note_server_name
        self._names_by_socket: dict[int, str | None] = {}

    @property
    def address(self) -> tuple[str, int]:
        return self.host, self.port

    def script(self, command: str, *steps: object, then: object = USUAL) -> None:
        """Set what to do at the next times `command` comes; this replaces what was scripted for it."""
        self._scripts[command.upper()] = Script(deque(steps), then)

    async def messages(self, count: int, timeout: float = PATIENCE) -> list[Message]:
        """Return the accepted mails, as soon as there are `count` of them."""
        await self._until(lambda: len(self.received) >= count, timeout, f"{count} messages")
        return list(self.received)

    async def connections(self, count: int, timeout: float = PATIENCE) -> list[Session]:
        """Return the sessions, as soon as `count` have begun."""
        await self._until(lambda: len(self.sessions) >= count, timeout, f"{count} sessions")
        return list(self.sessions)

    async def ended(self, count: int, timeout: float = PATIENCE) -> list[Session]:
        """Return the sessions, as soon as `count` of them have ended."""
        await self._until(
            lambda: sum(s.ended.is_set() for s in self.sessions) >= count, timeout, f"{count} ended sessions"
        )
        return list(self.sessions)

    async def commands(self, verb: str, count: int = 1, timeout: float = PATIENCE) -> None:
        """Return as soon as `verb` was received `count` times over all sessions."""
        await self._until(
            lambda: sum(s.verbs.count(verb.upper()) for s in self.sessions) >= count,
            timeout,
            f"{count} times {verb}",
        )

    async def start(self) -> Self:
        tls = self._tls if self._implicit_tls else None
        self._server = await asyncio.start_server(self._accept, self.host, 0, ssl=tls, limit=1 << 20)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def _until(self, done: Callable[[], bool], timeout: float, what: str) -> None:
        async with self._changed:
            try:
                async with asyncio.timeout(timeout):
                    await self._changed.wait_for(done)
            except TimeoutError:
                seen = [s.commands for s in self.sessions]
                raise AssertionError(f"the sink waited for {what} in vain; it saw {seen}") from None

    async def _tell(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        session = Session(len(self.sessions))
        self.sessions.append(session)
        task = asyncio.ensure_future(self._serve(session, reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(
        self, session: Session, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        talk = _Talk(self, session, reader, writer)
        await self._tell()
        try:
            await talk.run()
        except (Ended, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError):
            pass
        finally:
            writer.transport.close()
            session.ended.set()
            await asyncio.shield(self._tell())

    def _note_server_name(
        self, connection: ssl.SSLSocket | ssl.SSLObject, name: str | None, context: ssl.SSLContext
    ) -> None:
        self._names_by_socket[id(connection)] = name

    def _server_name(self, writer: asyncio.StreamWriter) -> str | None:
        return self._names_by_socket.get(id(writer.get_extra_info("ssl_object")))


class _Talk:
    """The server's side of one session."""

    def __init__(
        self, sink: Sink, session: Session, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._sink = sink
        self._session = session
        self._reader = reader
        self._writer = writer

    async def run(self) -> None:
        self._note_encryption()
        await self._do("CONNECT", "", f"220 {self._sink.name} ESMTP")
        while True:
            line = (await self._line()).decode("utf-8", "surrogateescape").rstrip("\r\n")
            self._session.commands.append(line)
            await self._sink._tell()
            verb, _, argument = line.partition(" ")
            await self._command(verb.upper(), argument)
            await self._sink._tell()

    async def _line(self) -> bytes:
        line = await self._reader.readline()
        if not line.endswith(b"\n"):
            raise Ended
        return line

    async def _command(self, verb: str, argument: str) -> None:
        handler = getattr(self, f"_on_{verb.lower()}", None)
        if handler is None:
            await self._do(verb, argument, "500 5.5.2 unknown command")
        else:
            await handler(argument)

    # What the usual server does.

    async def _on_ehlo(self, argument: str) -> None:
        self._session.hello = argument
        lines = [f"250 {self._sink.name} greets {argument}", *self._offers()]
        await self._do("EHLO", argument, "\n".join(lines))

    def _offers(self) -> list[str]:
        offers = [f"250 {extension}" for extension in self._sink.extensions]
        if self._sink._tls is not None and not self._session.is_encrypted:
            offers.append("250 STARTTLS")
        if self._sink._users is not None:
            offers.append("250 AUTH PLAIN LOGIN")
        return offers

    async def _on_helo(self, argument: str) -> None:
        self._session.hello = argument
        await self._do("HELO", argument, f"250 {self._sink.name}")

    async def _on_starttls(self, argument: str) -> None:
        usual = "220 2.0.0 go ahead" if self._sink._tls is not None else "502 5.5.1 not here"
        if await self._do("STARTTLS", argument, usual) == 220 and self._sink._tls is not None:
            await self._writer.start_tls(self._sink._tls)
            self._session.hello = ""
            self._note_encryption()

    async def _on_auth(self, argument: str) -> None:
        way, _, first = argument.partition(" ")
        if way.upper() == "PLAIN":
            _, user, password = base64.b64decode(first).decode().split("\0")
        else:
            user = await self._prompt("Username:")
            password = await self._prompt("Password:")
        self._session.login = (user, password)
        known = (self._sink._users or {}).get(user) == password
        await self._do("AUTH", argument, "235 2.7.0 welcome" if known else "535 5.7.8 wrong name or password")

    async def _prompt(self, words: str) -> str:
        self._writer.write(f"334 {base64.b64encode(words.encode()).decode()}\r\n".encode())
        return base64.b64decode(await self._line()).decode()

    async def _on_mail(self, argument: str) -> None:
        match = re.match(r"FROM:<([^>]*)>(.*)", argument, re.IGNORECASE)
        usual = "250 2.1.0 ok" if match else "501 5.5.4 syntax"
        at = asyncio.get_running_loop().time()
        if _is_yes(await self._do("MAIL", argument, usual)) and match:
            self._session.mail_from = match[1]
            self._session.mail_at = at
            self._session.mail_parameters = match[2].split()
            self._session.recipients = []

    async def _on_rcpt(self, argument: str) -> None:
        match = re.match(r"TO:<(.*)>", argument, re.IGNORECASE)
        usual = "250 2.1.5 ok" if self._session.mail_from is not None else "503 5.5.1 MAIL first"
        if _is_yes(await self._do("RCPT", argument, usual)) and match:
            self._session.recipients.append(match[1])

    async def _on_data(self, argument: str) -> None:
        usual = "354 go ahead" if self._session.recipients else "554 5.5.1 no valid recipients"
        if await self._do("DATA", argument, usual) != 354:
            return
        content = await self._content()
        code = await self._do("DOT", "", f"250 2.0.0 kept as {len(self._sink.received) + 1}")
        if _is_yes(code) and self._session.recipients:
            self._keep(content)
        else:
            self._session.refused.append(content)
        self._forget()

    async def _content(self) -> bytes:
        lines: list[bytes] = []
        is_first = True
        try:
            while (line := await self._reader.readuntil(b"\n")) != b".\r\n":
                lines.append(line[1:] if line.startswith(b".") else line)
                if is_first:
                    await self._do("BODY", "", "")
                    is_first = False
        except BaseException:
            self._session.unfinished.append(b"".join(lines))
            raise
        return b"".join(lines)

    def _keep(self, content: bytes) -> None:
        session = self._session
        message = Message(
            mail_from=session.mail_from or "",
            mail_parameters=session.mail_parameters,
            recipients=list(session.recipients),
            content=content,
            session=session,
            began=session.mail_at,
        )
        session.messages.append(message)
        self._sink.received.append(message)

    async def _on_rset(self, argument: str) -> None:
        self._forget()
        await self._do("RSET", argument, "250 2.0.0 ok")

    async def _on_noop(self, argument: str) -> None:
        await self._do("NOOP", argument, "250 2.0.0 ok")

    async def _on_quit(self, argument: str) -> None:
        await self._do("QUIT", argument, "221 2.0.0 bye")
        raise Ended

    def _forget(self) -> None:
        self._session.mail_from = None
        self._session.recipients = []

    def _note_encryption(self) -> None:
        ssl_object = self._writer.get_extra_info("ssl_object")
        if ssl_object is not None:
            self._session.is_encrypted = True
            self._session.tls_version = ssl_object.version()
            self._session.server_name = self._sink._server_name(self._writer)

    # Scripted steps.

    async def _do(self, command: str, argument: str, usual: str) -> int:
        """Carry out the next step for `command`; the code of the reply that was given, or 0."""
        script = self._sink._scripts.get(command)
        return await self._step(USUAL if script is None else script.next(), argument, usual)

    async def _step(self, step: object, argument: str, usual: str) -> int:
        if isinstance(step, tuple):
            code = 0
            for part in step:
                code = await self._step(part, argument, usual) or code
            return code
        if isinstance(step, asyncio.Event):
            await step.wait()
            return 0
        if isinstance(step, Act):
            return await self._act(step, usual)
        if callable(step):
            return await self._step(step(self._session, argument), argument, usual)
        assert isinstance(step, str | bytes), f"not a step: {step!r}"
        return await self._write(step)

    async def _act(self, act: Act, usual: str) -> int:
        if act is USUAL:
            return await self._write(usual) if usual else 0
        if act is SILENCE:
            # The client has to give up: the session ends when it closes.
            while await self._reader.read(65536):
                pass
        elif act is DROP:
            self._writer.transport.abort()
        else:
            await self._writer.drain()
        raise Ended

    async def _write(self, answer: str | bytes) -> int:
        data = answer if isinstance(answer, bytes) else _reply_bytes(answer)
        self._writer.write(data)
        await self._writer.drain()
        match = re.match(rb"[0-9]{3}", data)
        return int(match[0]) if match else 0


def _is_yes(code: int) -> bool:
    return 200 <= code < 300


def _reply_bytes(text: str) -> bytes:
    """Return `250 a` newline `250 b` as SMTP writes it: `250-a`, then `250 b`."""
    lines = text.split("\n")
    code = lines[0][:3]
    words = [line[4:] if line[:3] == code else line for line in lines]
    last = len(words) - 1
    return "".join(f"{code}{' ' if i == last else '-'}{word}\r\n" for i, word in enumerate(words)).encode()
