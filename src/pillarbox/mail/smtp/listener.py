"""The sessions of one SMTP listener: how they begin, how long they may last, how they end with the
process."""

from __future__ import annotations

import asyncio
import ssl
import sys
from collections import deque
from collections.abc import Coroutine
from dataclasses import dataclass
from functools import partial
from socket import IPPROTO_TCP, TCP_INFO, socket
from typing import Any, Protocol

from pillarbox.mail.smtp import answers as say
from pillarbox.mail.smtp.answers import SessionReply
from pillarbox.mail.smtp.connection import OUT_OF_RESOURCES
from pillarbox.mail.smtp.conversation import Conversation, SessionTimeouts
from pillarbox.mail.smtp.session import SessionHandler, SmtpSession


class LmtpSession(SmtpSession):
    """The state of one LMTP session."""

    __slots__ = ()

    SPEAKS = "LMTP"
    HELP = say.LMTP_HELP
    HELLO_FIRST = say.LHLO_FIRST
    NO_RECIPIENTS = say.NOBODY_ACCEPTED

    @property
    def protocol(self) -> str:
        """How the message came, in the words of RFC 3848 and RFC 6531."""
        name = "UTF8LMTP" if self.sender is not None and self.sender.utf8 else "LMTP"
        return f"{name}{'S' if self.tls else ''}"

    def _error(self, session_reply: SessionReply) -> None:
        self._answer(session_reply)

    def _not_here(self, _: bytes) -> None:
        """Refuse HELO and EHLO (4.1)."""
        self._error(say.SAY_LHLO)

    def _done(self, session_reply: SessionReply) -> None:
        """Give an answer that is not one for each recipient to all of them (4.2)."""
        if session_reply.replies == 1:
            session_reply = session_reply._replace(wire=session_reply.wire * len(self.recipients))
        super()._done(session_reply)


LmtpSession.COMMANDS = {
    **SmtpSession.COMMANDS,
    b"LHLO": LmtpSession._ehlo,
    b"EHLO": LmtpSession._not_here,
    b"HELO": LmtpSession._not_here,
}


BACKLOG = 1024
ACCEPTED_AT_ONCE = 16
"""Connections that are accepted in one turn of the loop, where so many wait. The loop accepts one by itself:
then whoever comes behind four hundred others waits for four hundred turns."""

WAITING = slice(24, 28)
"""Of a listening socket's TCP_INFO: how many connections wait to be accepted (`tcpi_unacked`)."""

GREETING_BATCH = 0.002
"""Seconds that a greeting may be late, so that those of several sessions need one timer."""

DEFAULT_TIMEOUTS = SessionTimeouts()
MOST_COMMANDS = 2000
"""Of a session without a message that was taken: a client may not occupy a session with commands alone
(SMTP-21)."""


@dataclass(frozen=True, slots=True)
class ListenerOptions:
    """The options of a listener. `implicit_tls` begins every connection with TLS; otherwise STARTTLS is
    offered where there is a certificate. `normalize` takes a bare LF for a line end inside a text. Large
    messages wait in `folder`. `lmtp` speaks LMTP in place of SMTP."""

    hostname: str
    most_octets: int
    implicit_tls: bool = False
    offers_login: bool = False
    login_needs_tls: bool = True
    needs_login: bool = False
    normalize: bool = False
    folder: str | None = None
    timeouts: SessionTimeouts = DEFAULT_TIMEOUTS
    most_commands: int = MOST_COMMANDS
    lmtp: bool = False


class ClientLimits(Protocol):
    """Counts the sessions and failed logins of each client."""

    def admit(self, peer: str) -> bool:
        """Take one more session from this address, or refuse it."""

    def left(self, peer: str) -> None:
        """Note that a session that was admitted is over."""

    def may_login(self, peer: str) -> bool:
        """Return False while this address has failed too often."""

    def login_failed(self, peer: str) -> None:
        """Note one more failure of this address."""


class CurrentCertificate(Protocol):
    """A certificate that may be renewed while sessions run; `context` is the one for the next handshake."""

    @property
    def context(self) -> ssl.SSLContext: ...


class SmtpListener:
    """One SMTP or LMTP listener."""

    def __init__(
        self,
        handler: SessionHandler,
        options: ListenerOptions,
        limits: ClientLimits,
        certificate: CurrentCertificate | None = None,
    ) -> None:
        self.handler = handler
        self.hostname = options.hostname
        self.most_octets = options.most_octets
        self.most_commands = options.most_commands
        self.offers_login = options.offers_login
        self.login_needs_tls = options.login_needs_tls
        self.needs_login = options.needs_login
        self.normalize = options.normalize
        self.folder = options.folder
        self.timeouts = options.timeouts
        self.stopping = False
        self.refused = 0
        """How many connections were refused for want of descriptors or memory."""
        self._limits = limits
        self._certificate = certificate
        self._session = LmtpSession if options.lmtp else SmtpSession
        self.implicit_tls = options.implicit_tls
        self._sessions: set[Conversation] = set()
        self._silent: deque[tuple[float, Conversation]] = deque()
        self._servers: list[asyncio.Server] = []
        self._accepting: list[asyncio.Task[None]] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._empty = asyncio.Event()
        self._empty.set()

    async def open(self, *listeners: socket) -> None:
        """Accept connections on a bound socket; with implicit TLS there may be several duplicates of it, of
        which each accepts some."""
        loop = asyncio.get_running_loop()
        for listener in listeners:
            listener.setblocking(False)
            if self.implicit_tls:
                listener.listen(BACKLOG)
                self._accepting.append(self._task(self._accept(listener)))
            else:
                accepted = partial(self._accepted, listener)
                self._servers.append(await loop.create_server(accepted, sock=listener, backlog=BACKLOG))
        self._task(self._sweep())

    def _accepted(self, listener: socket) -> Conversation:
        """Return the session of a connection that the loop has accepted. Where many wait behind it, some of
        them are accepted now.

        Duplicates of the socket do this as well, but each of them is called for each connection, also where
        nobody waits: with fifteen a connection of one mail took up to a tenth more.
        """
        if _waiting(listener) >= ACCEPTED_AT_ONCE:
            self._accept_more(listener)
        return self._session(self)

    def _accept_more(self, listener: socket) -> None:
        for _ in range(ACCEPTED_AT_ONCE - 1):
            try:
                connection, _ = listener.accept()
            except OSError:
                # Another process has taken them. Of any other trouble the loop hears, too.
                return
            connection.setblocking(False)
            self._task(self._connect(connection))

    async def _connect(self, connection: socket) -> None:
        try:
            await asyncio.get_running_loop().connect_accepted_socket(lambda: self._session(self), connection)
        except OSError:
            # The client has gone.
            connection.close()

    def _task(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _accept(self, listener: socket) -> None:
        """Take connections that begin with TLS: each gets the certificate of its moment (TLS-07)."""
        loop = asyncio.get_running_loop()
        with listener:
            while True:
                try:
                    connection, peer = await loop.sock_accept(listener)
                except OSError as trouble:
                    # Any other trouble is that of one client.
                    if trouble.errno in OUT_OF_RESOURCES:
                        await asyncio.sleep(self.timeouts.slow)
                else:
                    self._task(self._shake_hands(connection, peer[0]))

    async def _shake_hands(self, connection: socket, peer: str) -> None:
        session = self._session(self)
        session.peer = peer
        context = self.tls
        if context is None or not self.admit(session):
            connection.close()
            return
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: session, connection, ssl=context, ssl_handshake_timeout=self.timeouts.handshake
            )
        except Exception:
            # Whatever a stranger's handshake fails of, it is the end of this connection and of no other.
            connection.close()
            self.left(session)

    @property
    def sessions(self) -> int:
        """How many there are now."""
        return len(self._sessions)

    def close(self) -> None:
        """Accept nothing more, and end the sessions in which nothing is under way (SMTP-22)."""
        self.stopping = True
        for server in self._servers:
            server.close()
        for accepting in self._accepting:
            accepting.cancel()
        for session in tuple(self._sessions):
            if session.is_idle:
                session.close(say.STOPPING)

    async def stop(self, grace: float) -> None:
        """Close, and let transactions end within `grace` seconds; every session gets a last reply."""
        self.close()
        try:
            async with asyncio.timeout(grace):
                await self._empty.wait()
        except TimeoutError:
            for session in tuple(self._sessions):
                session.close(say.STOPPING)
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _sweep(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(self.timeouts.look_every)
            now = loop.time()
            for session in tuple(self._sessions):
                session.expire(now)

    # What sessions ask -------------------------------------------------------------------------------

    @property
    def tls(self) -> ssl.SSLContext | None:
        return None if self._certificate is None else self._certificate.context

    def greet_later(self, session: Conversation) -> None:
        loop = asyncio.get_running_loop()
        wait = self.timeouts.greeting
        if not self._silent:
            loop.call_later(wait + min(wait, GREETING_BATCH), self._greet)
        self._silent.append((loop.time() + wait, session))

    def _greet(self) -> None:
        loop = asyncio.get_running_loop()
        now = loop.time()
        silent = self._silent
        while silent and silent[0][0] <= now:
            silent.popleft()[1].greet()
        if silent:
            loop.call_later(silent[0][0] - now + min(self.timeouts.greeting, GREETING_BATCH), self._greet)

    def admit(self, session: Conversation) -> bool:
        if not self._limits.admit(session.peer):
            self.refused += 1
            return False
        session.admitted = True
        self._sessions.add(session)
        self._empty.clear()
        return True

    def left(self, session: Conversation) -> None:
        if not session.admitted:
            return
        session.admitted = False
        self._sessions.discard(session)
        self._limits.left(session.peer)
        if not self._sessions:
            self._empty.set()

    def may_login(self, session: SmtpSession) -> bool:
        return self._limits.may_login(session.peer)

    def login_failed(self, session: SmtpSession) -> None:
        self._limits.login_failed(session.peer)


def _waiting(listener: socket) -> int:
    """Return how many connections wait to be accepted."""
    return int.from_bytes(listener.getsockopt(IPPROTO_TCP, TCP_INFO, WAITING.stop)[WAITING], sys.byteorder)
