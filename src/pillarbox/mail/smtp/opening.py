"""The beginning of an SMTP session: connect, banner, EHLO, STARTTLS, AUTH (RFC 5321, 3.1; 3207; 4954).

Every way in which this can fail is a `ConnectFailed` value that names the stage; nothing of the mail
has been told to the server by then, so another host may be tried with it.
"""

from __future__ import annotations

import asyncio
import base64
import errno
import ipaddress
import re
import socket
import ssl
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final

from pillarbox.mail.smtp.connection import OUT_OF_RESOURCES, Timeouts, Wire
from pillarbox.mail.smtp.reply import SmtpReply, SmtpStage, our_reply
from pillarbox.mail.smtp.tls import TlsInfo, TlsMode, context_for

Connect = Callable[[asyncio.Protocol, str, int], Awaitable[None]]
"""Connects a protocol to a host and port, or raises OSError."""

MAX_SIZE_DIGITS: Final = 20
_PRINTABLE = re.compile(r"[!-~]{1,255}")


@dataclass(frozen=True, slots=True)
class ConnectFailed:
    """No session: at which stage, and the answer that says why (`reply.ours` if no server said it)."""

    host: str
    address: str
    stage: SmtpStage
    reply: SmtpReply
    is_ours: bool = False
    """Whether this process lacked a descriptor, a port or memory: nothing was learned about the server."""

    @property
    def reason(self) -> str:
        return self.reply.text


@dataclass(frozen=True, slots=True)
class Extensions:
    """The extensions that the server offered in its last EHLO: keyword in upper case → its parameters."""

    keywords: Mapping[str, str]

    def __contains__(self, keyword: str) -> bool:
        return keyword in self.keywords

    @property
    def size_limit(self) -> int | None:
        """The largest message the server takes; nothing when it names none (RFC 1870, 4)."""
        digits = self.keywords.get("SIZE", "")
        if not digits.isascii() or not digits.isdigit() or len(digits) > MAX_SIZE_DIGITS:
            return None
        return int(digits) or None

    @property
    def login_mechanisms(self) -> frozenset[str]:
        return frozenset(self.keywords.get("AUTH", "").upper().split())


@dataclass(frozen=True, slots=True)
class OpenedSession:
    """A greeted server, ready for MAIL."""

    wire: Wire
    banner: SmtpReply
    extensions: Extensions
    tls: TlsInfo | None


class _OpeningStopped(Exception):  # noqa: N818 - it carries a value out of nested steps and never leaves this file
    def __init__(self, stage: SmtpStage, reply: SmtpReply, *, is_ours: bool = False) -> None:
        self.stage = stage
        self.reply = reply
        self.is_ours = is_ours


async def tcp_connect(protocol: asyncio.Protocol, host: str, port: int) -> None:
    """Connect to an address over TCP."""
    await asyncio.get_running_loop().create_connection(lambda: protocol, host, port)


@dataclass(frozen=True, slots=True)
class SessionOpening:
    """The settings of one session."""

    address: tuple[str, int]
    server_name: str
    hello: str
    tls: TlsMode
    timeouts: Timeouts
    login: tuple[str, str] | None
    trust: ssl.SSLContext | None
    connect: Connect

    async def run(self) -> OpenedSession | ConnectFailed:
        """Open the session, or leave nothing open and say what failed."""
        if _PRINTABLE.fullmatch(self.hello) is None:
            raise ValueError("the name for EHLO must be printable ASCII")
        wire = Wire()
        wire.allow(self.timeouts.total)
        try:
            return await self._dialogue(wire)
        except _OpeningStopped as stopped:
            if wire.is_idle:
                wire.write(b"QUIT\r\n", answers=1)
                wire.close()
            wire.end("the session was given up")
            return ConnectFailed(
                self.server_name, self.address[0], stopped.stage, stopped.reply, is_ours=stopped.is_ours
            )
        except BaseException:
            wire.end("the session was given up")
            raise

    async def _dialogue(self, wire: Wire) -> OpenedSession:
        await self._connect(wire)
        tls = await self._encrypt(wire) if self.tls is TlsMode.IMPLICIT else None
        banner = await wire.reply(self.timeouts.banner)
        if not banner.is_yes:
            raise _OpeningStopped(SmtpStage.BANNER, banner)
        extensions = await self._hello(wire)
        if tls is None and self.tls is not TlsMode.NONE:
            tls = await self._start_tls(wire, extensions)
            if tls is not None:
                # What was learnt in clear is forgotten (RFC 3207, 4.2).
                extensions = await self._hello(wire)
        if self.login is not None:
            await self._authenticate(wire, extensions, self.login, tls is not None)
        return OpenedSession(wire, banner, extensions, tls)

    async def _connect(self, wire: Wire) -> None:
        host, port = self.address
        try:
            async with asyncio.timeout(self.timeouts.connect):
                await self.connect(wire, host, port)
        except TimeoutError:
            raise _OpeningStopped(
                SmtpStage.CONNECT, our_reply(421, "4.4.1", "connecting took too long")
            ) from None
        except socket.gaierror as error:
            # Without an address for the name it is no matter of the host (RFC 3463, 3.5).
            reason = f"the host name has no address: {error.strerror}"
            raise _OpeningStopped(SmtpStage.CONNECT, our_reply(421, "4.4.3", reason)) from None
        except OSError as error:
            if _is_ours(error, host):
                # A fault of this machine is no matter of the host (RFC 3463, 3.4).
                reason = f"this machine could open no connection: {error.strerror}"
                raise _OpeningStopped(
                    SmtpStage.CONNECT, our_reply(421, "4.3.0", reason), is_ours=True
                ) from None
            raise _OpeningStopped(
                SmtpStage.CONNECT, our_reply(421, "4.4.1", _connect_reason(error))
            ) from None

    async def _hello(self, wire: Wire) -> Extensions:
        reply = await self._ask(wire, f"EHLO {self.hello}", self.timeouts.hello)
        if reply.is_yes:
            return parse_extensions(reply)
        if reply.code >= 500:
            # RFC 5321, 3.2: a server that does not know EHLO is greeted the old way.
            second = await self._ask(wire, f"HELO {self.hello}", self.timeouts.hello)
            if second.is_yes:
                return Extensions({})
            reply = reply if second.ours else second
        raise _OpeningStopped(SmtpStage.HELLO, reply)

    async def _start_tls(self, wire: Wire, extensions: Extensions) -> TlsInfo | None:
        if "STARTTLS" not in extensions:
            if self.tls.may_be_clear:
                return None
            raise _OpeningStopped(SmtpStage.TLS, our_reply(451, "4.7.10", "TLS is required and not offered"))
        reply = await self._ask(wire, "STARTTLS", self.timeouts.hello)
        if reply.is_yes:
            return await self._encrypt(wire)
        if self.tls.may_be_clear and reply.code != 421:
            return None
        raise _OpeningStopped(SmtpStage.TLS, reply)

    async def _encrypt(self, wire: Wire) -> TlsInfo:
        verified = self.tls.is_verified
        context = self.trust if verified and self.trust is not None else context_for(verified)
        name = self.server_name.rstrip(".")
        result = await wire.start_tls(context, name, self.timeouts.hello, verified=verified)
        if isinstance(result, str):
            raise _OpeningStopped(SmtpStage.TLS, our_reply(454, "4.7.5", f"TLS failed: {result}"))
        return result

    async def _authenticate(
        self, wire: Wire, extensions: Extensions, login: tuple[str, str], is_encrypted: bool
    ) -> None:
        if not is_encrypted and not _is_loopback(self.address[0]):
            raise _OpeningStopped(
                SmtpStage.AUTH,
                our_reply(451, "4.7.11", "the password is not sent without TLS, which is not offered"),
            )
        mechanisms = extensions.login_mechanisms
        user, password = (part.encode() for part in login)
        if "PLAIN" in mechanisms:
            token = base64.b64encode(b"\0" + user + b"\0" + password).decode()
            reply = await self._ask(wire, f"AUTH PLAIN {token}", self.timeouts.hello)
        elif "LOGIN" in mechanisms:
            reply = await self._ask(wire, "AUTH LOGIN", self.timeouts.hello)
            for part in (user, password):
                if reply.code == 334:
                    reply = await self._ask(wire, base64.b64encode(part).decode(), self.timeouts.hello)
        else:
            reply = our_reply(451, "4.7.4", "the server offers no way to log in that we know")
        if not reply.is_yes:
            raise _OpeningStopped(SmtpStage.AUTH, reply)

    async def _ask(self, wire: Wire, line: str, seconds: float) -> SmtpReply:
        wire.write(f"{line}\r\n".encode("ascii"), answers=1)
        return await wire.reply(seconds)


def parse_extensions(reply: SmtpReply) -> Extensions:
    """Return the keywords of an EHLO answer (RFC 5321, 4.1.1.1); the old `AUTH=` spelling is understood."""
    keywords: dict[str, str] = {}
    for line in reply.lines[1:]:
        keyword, _, parameters = line.strip().replace("=", " ", 1).partition(" ")
        known = keywords.get(keyword.upper())
        keywords[keyword.upper()] = f"{known} {parameters}".strip() if known else parameters.strip()
    return Extensions(keywords)


def _is_loopback(host: str) -> bool:
    """Return whether the address, or the name that RFC 6761 6.3 reserves for it, stays on this machine."""
    if host.lower().rstrip(".") == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _is_ours(error: OSError, host: str) -> bool:
    """Return whether this machine is the one that lacks something. No IPv4 address is free where no port is;
    for IPv6 the same error says that the machine does not speak it."""
    return error.errno in OUT_OF_RESOURCES or (error.errno == errno.EADDRNOTAVAIL and ":" not in host)


def _connect_reason(error: OSError) -> str:
    if isinstance(error, ConnectionRefusedError):
        return "the connection was refused"
    if isinstance(error, ConnectionError):
        return "the connection was lost"
    return f"the host cannot be reached: {error.strerror or 'no route'}"
