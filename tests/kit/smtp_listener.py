"""An SMTP listener in this process, a handler that records, and a client that writes exactly the given bytes.

async with running_listener() as found, found.dialog() as client:
    assert await client.ask("EHLO quay.example") ...
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import re
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path as File
from typing import Any

import pytest
import uvloop

from pillarbox.kernel.clock import SystemClock
from pillarbox.kernel.security.certificates import Certificate, self_made
from pillarbox.mail.smtp import answers as say
from pillarbox.mail.smtp.answers import SessionReply
from pillarbox.mail.smtp.conversation import SessionTimeouts
from pillarbox.mail.smtp.listener import ListenerOptions, SmtpListener
from pillarbox.mail.smtp.session import MailCommand, Path, ReceivedText, SessionHandler, SmtpSession

TIMEOUT = 10.0
HURRIED = SessionTimeouts(greeting=0.0, slow=0.0, look_every=0.01)
LINE = re.compile(rb"(\d{3})([ -])([^\r\n]*)\r\n")
ENHANCED = re.compile(r"(\d)\.\d{1,3}\.\d{1,3} ")


@dataclass
class StoredMessage:
    """A message as the handler got it."""

    sender: str
    recipients: list[str]
    text: bytes
    in_memory: bool
    protocol: str


@dataclass
class RecordingHandler:
    """A handler that accepts everything; `verdict` may change its answer to a message."""

    messages: list[StoredMessage] = field(default_factory=list)
    ended_count: int = 0
    verdict: Callable[[SmtpSession, ReceivedText], SessionReply | Awaitable[SessionReply]] | None = None
    users: dict[str, str] = field(default_factory=dict)

    def mail(self, session: SmtpSession, mail: MailCommand) -> SessionReply:
        return say.SENDER_OK

    def recipient(self, session: SmtpSession, path: Path) -> SessionReply:
        if path.local == "unknown":
            return say.answer(550, "5.1.1", "There is no such address here")
        if len(session.recipients) >= 100:
            return say.TOO_MANY_RECIPIENTS
        session.recipients.append(str(path))
        return say.RECIPIENT_OK

    def message(self, session: SmtpSession, content: ReceivedText) -> SessionReply | Awaitable[SessionReply]:
        assert session.sender is not None
        self.messages.append(
            StoredMessage(
                sender=str(session.sender.sender),
                recipients=list(session.recipients),
                text=content.read(),
                in_memory=content.in_memory,
                protocol=session.protocol,
            )
        )
        return say.OK if self.verdict is None else self.verdict(session, content)

    async def login(self, session: SmtpSession, user: str, password: str) -> SessionReply:
        if self.users.get(user) != password:
            return say.BAD_LOGIN
        session.user = user
        return say.AUTHENTICATED

    def ended(self, session: SmtpSession) -> None:
        self.ended_count += 1


class CountingLimits:
    """Client limits that admit everybody and count the sessions."""

    def __init__(self) -> None:
        self.inside = 0

    def admit(self, peer: str) -> bool:
        self.inside += 1
        return True

    def left(self, peer: str) -> None:
        self.inside -= 1

    def may_login(self, peer: str) -> bool:
        return True

    def login_failed(self, peer: str) -> None:
        pass


@dataclass(frozen=True)
class SmtpReply:
    """A reply of the server."""

    code: int
    lines: tuple[str, ...]

    @property
    def text(self) -> str:
        return self.lines[-1]

    @property
    def enhanced(self) -> str:
        """The enhanced code, or nothing."""
        found = ENHANCED.match(self.text)
        return found[0].strip() if found else ""

    def __str__(self) -> str:
        return f"{self.code} {self.enhanced}".strip()


class Dialog(asyncio.Protocol):
    """A connection whose replies, and whose end, can be awaited one by one."""

    def __init__(self) -> None:
        self.received = b""
        self.heard: list[SmtpReply] = []
        self.is_over = False
        self._lines: list[str] = []
        self._changed = asyncio.Event()
        self._next = 0
        self.transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.received += data
        while (found := LINE.match(self.received)) is not None:
            self.received = self.received[found.end() :]
            self._lines.append(found[3].decode("ascii"))
            if found[2] == b" ":
                self.heard.append(SmtpReply(int(found[1]), tuple(self._lines)))
                self._lines = []
        self._changed.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_over = True
        self._changed.set()

    async def _until(self, is_so: Callable[[], bool], seconds: float) -> None:
        async with asyncio.timeout(seconds):
            while not is_so():
                self._changed.clear()
                await self._changed.wait()

    async def hear(self, seconds: float = TIMEOUT) -> SmtpReply:
        """Return the next reply."""
        await self._until(lambda: self._next < len(self.heard) or self.is_over, seconds)
        assert self._next < len(self.heard), "the connection ended without a reply"
        self._next += 1
        return self.heard[self._next - 1]

    async def hear_all(self, count: int) -> list[SmtpReply]:
        return [await self.hear() for _ in range(count)]

    async def over(self, seconds: float = TIMEOUT) -> list[SmtpReply]:
        """Wait for the end of the connection; the replies that nobody has asked for."""
        await self._until(lambda: self.is_over, seconds)
        left = self.heard[self._next :]
        self._next = len(self.heard)
        return left

    def write(self, data: bytes) -> None:
        self.transport.write(data)

    async def ask(self, *lines: str | bytes) -> SmtpReply:
        """Send lines one after the other, each after the reply to the one before; the last reply."""
        reply = None
        for line in lines:
            self.write((line if isinstance(line, bytes) else line.encode()) + b"\r\n")
            reply = await self.hear()
        assert reply is not None
        return reply

    async def send(
        self, text: bytes, *, sender: str = "a@b.example", to: Iterable[str] = ("c@d.example",)
    ) -> SmtpReply:
        """Send a whole transaction; `text` has its line ends and no end mark."""
        for line in (f"MAIL FROM:<{sender}>", *(f"RCPT TO:<{one}>" for one in to), "DATA"):
            reply = await self.ask(line)
            if reply.code >= 400:
                return reply
        self.write(text + b".\r\n")
        return await self.hear()

    async def start_tls(self, context: ssl.SSLContext) -> None:
        """Start TLS, after the 220 of STARTTLS."""
        loop = asyncio.get_running_loop()
        self.transport = await loop.start_tls(self.transport, self, context, server_hostname="localhost")

    def close(self) -> None:
        self.transport.abort()


@dataclass
class RunningListener:
    """A listener on loopback."""

    listener: SmtpListener
    port: int
    certificate: Certificate | None

    @asynccontextmanager
    async def dialog(
        self, *, greeted: bool = True, tls: ssl.SSLContext | None = None
    ) -> AsyncIterator[Dialog]:
        """Yield a connection whose greeting was heard."""
        async with dialog(self.port, greeted=greeted, tls=tls) as client:
            yield client

    async def empty(self) -> None:
        """Return when all sessions are over."""
        async with asyncio.timeout(TIMEOUT):
            while self.listener.sessions:
                await asyncio.sleep(0.005)


@asynccontextmanager
async def dialog(
    port: int, *, greeted: bool = True, tls: ssl.SSLContext | None = None
) -> AsyncIterator[Dialog]:
    loop = asyncio.get_running_loop()
    name = "localhost" if tls else None
    _, client = await loop.create_connection(Dialog, "127.0.0.1", port, ssl=tls, server_hostname=name)
    try:
        if greeted:
            assert (await client.hear()).code == 220
        yield client
    finally:
        client.close()


def bound() -> socket.socket:
    """Return a free port of loopback that nobody listens on yet."""
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    made.bind(("127.0.0.1", 0))
    return made


@asynccontextmanager
async def running_listener(
    handler: SessionHandler | None = None, *, tls: File | None = None, limits: Any = None, **options: Any
) -> AsyncIterator[RunningListener]:
    """Yield a listener with this handler; with `tls` it has a certificate of its own in that folder."""
    certificate = None
    if tls is not None:
        made = self_made(tls, "localhost", SystemClock().now())
        certificate = Certificate(made, made, SystemClock())
    given = {"hostname": "mx.pillar.example", "most_octets": 1_000_000, "timeouts": HURRIED, **options}
    listener = SmtpListener(
        handler or RecordingHandler(), ListenerOptions(**given), limits or CountingLimits(), certificate
    )
    at = bound()
    port = at.getsockname()[1]
    await listener.open(at)
    try:
        yield RunningListener(listener, port, certificate)
    finally:
        await listener.stop(0)


def trusting(folder: File) -> ssl.SSLContext:
    """Return a client that trusts the self-made certificate of this folder."""
    return ssl.create_default_context(cafile=str(folder / "tls" / "self-made.pem"))


def on_each_loop(test: Callable[..., Awaitable[None]]) -> Any:
    """Run an `async def` test on asyncio's own loop and on uvloop."""
    return _on_loops(test, pytest.param(asyncio.run, id="asyncio"))


def on_each_loop_in_time(test: Callable[..., Awaitable[None]]) -> Any:
    """Run a long `async def` test on uvloop, and on asyncio's own loop with `--slow`."""
    return _on_loops(test, pytest.param(asyncio.run, id="asyncio", marks=pytest.mark.slow))


def _on_loops(test: Callable[..., Awaitable[None]], plain: Any) -> Any:
    @pytest.mark.parametrize("run", [plain, pytest.param(uvloop.run, id="uvloop")])
    @functools.wraps(test)
    def both(run: Any, **fixtures: Any) -> None:
        run(test(**fixtures))

    own = inspect.signature(test)
    first = inspect.Parameter("run", inspect.Parameter.KEYWORD_ONLY)
    both.__signature__ = own.replace(  # type: ignore[attr-defined]
        parameters=[*(p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in own.parameters.values()), first]
    )
    del both.__wrapped__  # pytest would ask it whether it is async
    return both
