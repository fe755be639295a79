"""Network access of the checks, handed in so that tests can script it."""

from __future__ import annotations

import asyncio
import errno
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from enum import Enum
from ipaddress import ip_address
from typing import Final

from pillarbox.delivery.smtp.relay_faults import RelayFault
from pillarbox.kernel.clock import Clock
from pillarbox.kernel.network.address_policy import is_own
from pillarbox.kernel.network.dns_answers import (
    AnswerKind,
    DnsAnswer,
    DnsQuestion,
    Kind,
    UncachedDns,
    settled,
)
from pillarbox.kernel.settings.kinds import Relay
from pillarbox.mail.smtp.client import ConnectFailed
from pillarbox.people.openid.provider import Provider

SMTP_PORT: Final = 25
CONTROL_PORT: Final = 443
CONNECT_SECONDS: Final = 8.0
BANNER_SECONDS: Final = 15.0
LONGEST_LINE: Final = 512

PROBED: Final = ("gmail.com", "outlook.com", "yahoo.com")
"""Domains whose mail servers are asked for a greeting: they are never all away, and take mail from all the
world. Each is greeted and left; nothing is sent."""


class ConnectStage(Enum):
    """The stage that an attempt to connect has reached."""

    BANNER = "banner"
    SILENT = "silent"
    REFUSED = "refused"
    TIMEOUT = "timeout"
    NO_ROUTE = "no_route"
    FORBIDDEN = "forbidden"


@dataclass(frozen=True, slots=True)
class ConnectReport:
    """`BANNER` comes with the first line that the other side said, `SILENT` with what went wrong after the
    connection was there."""

    reached: ConnectStage
    line: str = ""

    @property
    def connected(self) -> bool:
        return self.reached in (ConnectStage.BANNER, ConnectStage.SILENT)


Connect = Callable[[str, int, bool], Awaitable[ConnectReport]]
"""Connects to an address and port; reads a greeting line if the third argument says so."""

BY_ERROR: Final = {
    errno.ECONNREFUSED: ConnectStage.REFUSED,
    errno.ECONNRESET: ConnectStage.REFUSED,
    errno.ETIMEDOUT: ConnectStage.TIMEOUT,
    errno.ENETUNREACH: ConnectStage.NO_ROUTE,
    errno.EADDRNOTAVAIL: ConnectStage.NO_ROUTE,
    errno.EAFNOSUPPORT: ConnectStage.NO_ROUTE,
    errno.EHOSTUNREACH: ConnectStage.FORBIDDEN,
    errno.EACCES: ConnectStage.FORBIDDEN,
    errno.EPERM: ConnectStage.FORBIDDEN,
}
"""A firewall that says no does it as `host unreachable` or `prohibited`; without any way out of the machine
the network itself is unreachable."""


OpenSession = Callable[[Relay], Awaitable[RelayFault | ConnectFailed | None]]
"""Opens a session with the smarthost as delivery does, with TLS and login, and ends it; why that failed."""


async def opens(_: Relay) -> None:
    return


Handshake = Callable[[str, int, str], Awaitable[str | None]]
"""Opens TLS with an address and port as a client that wants this name, and closes it; why that failed."""


@dataclass(frozen=True, slots=True)
class TlsHandshake:
    """Opens TLS for real. `trust` has the authorities that are trusted; None for those of this machine."""

    trust: ssl.SSLContext | None = None
    seconds: float = CONNECT_SECONDS

    async def __call__(self, address: str, port: int, name: str) -> str | None:
        trust = self.trust or await asyncio.to_thread(ssl.create_default_context)
        try:
            async with asyncio.timeout(self.seconds):
                _, writer = await asyncio.open_connection(address, port, ssl=trust, server_hostname=name)
        except ssl.SSLCertVerificationError as fault:
            return f"its certificate is not valid: {fault.verify_message}"
        except TimeoutError:
            return "it does not answer in TLS"
        except (OSError, ValueError):
            return "it does not speak TLS"
        writer.transport.abort()
        return None


@dataclass(frozen=True, slots=True)
class OutsideWorld:
    """DNS, connections and clock of the checks. `provider` is where people log in, if there is one."""

    dns: UncachedDns
    clock: Clock
    connect: Connect
    is_ours: Callable[[str], bool]
    open_session: OpenSession = opens
    handshake: Handshake = field(default_factory=TlsHandshake)
    provider: Provider | None = None

    async def look_up(self, name: str, kind: Kind) -> DnsAnswer:
        """Return the DNS answer of the authoritative servers, else of the resolvers."""
        return settled(await self.dns.ask(DnsQuestion(name, kind)))

    async def addresses(self, name: str) -> tuple[str, ...]:
        """Return the addresses of a name; an address is its own. Nothing where there are none."""
        if is_address(name):
            return (name,)
        seen = await self.look_up(name, "ADDRESSES")
        return seen.values if seen.kind is AnswerKind.VALUES else ()

    async def why_no_address(self, name: str) -> str:
        """Return what DNS says of a name that has no address, as the end of a sentence."""
        seen = await self.look_up(name, "ADDRESSES")
        return absence(name, seen)

    async def pointers(self, address: str) -> DnsAnswer:
        """Return the names that an address has in DNS."""
        return await self.look_up(ip_address(address).reverse_pointer, "PTR")


def absence(name: str, seen: DnsAnswer) -> str:
    """Return why there is nothing to connect to, as the end of a sentence."""
    if seen.kind is AnswerKind.NO_NAME:
        return f"DNS says that there is no name {name} (NXDOMAIN)"
    if seen.kind is AnswerKind.TROUBLE:
        return f"DNS does not say what {name} is: {seen.detail or 'no answer'}"
    return f"{name} has no address in DNS"


@dataclass(frozen=True, slots=True)
class Tcp:
    """Connects for real."""

    connect_seconds: float = CONNECT_SECONDS
    banner_seconds: float = BANNER_SECONDS

    async def __call__(self, address: str, port: int, greeting: bool) -> ConnectReport:
        try:
            async with asyncio.timeout(self.connect_seconds):
                reader, writer = await asyncio.open_connection(address, port, limit=LONGEST_LINE)
        except TimeoutError:
            return ConnectReport(ConnectStage.TIMEOUT)
        except OSError as error:
            return ConnectReport(BY_ERROR.get(error.errno or 0, ConnectStage.FORBIDDEN))
        try:
            return await self._greeting(reader, writer) if greeting else ConnectReport(ConnectStage.SILENT)
        finally:
            writer.close()

    async def _greeting(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> ConnectReport:
        try:
            async with asyncio.timeout(self.banner_seconds):
                line = await reader.readline()
                writer.write(b"QUIT\r\n")
                await writer.drain()
        except TimeoutError:
            return ConnectReport(ConnectStage.SILENT, "it says nothing")
        except (OSError, ValueError):
            return ConnectReport(ConnectStage.SILENT, "it ends the connection")
        text = line.decode("ascii", "replace").strip()
        return (
            ConnectReport(ConnectStage.BANNER, text)
            if text
            else ConnectReport(ConnectStage.SILENT, "it ends the connection")
        )


def ours(address: str) -> bool:
    """Return whether this machine itself has the address."""
    return is_own(ip_address(address))


def is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True
