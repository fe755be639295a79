"""The one HTTP client for the outside (architecture 2.9; WH-06, WH-07, WH-08).

Webhooks, remote attachments, client metadata documents and logos are fetched here and nowhere else. A
host is looked up once; every address that comes back is checked, and the connection goes to one of
those addresses, so a name that changes its address between check and connection gains nothing. TLS still
verifies the name. The socket itself checks once more where it is about to connect.

Nothing is taken from the environment (proxies, netrc), and no cookies are kept. A fetch reuses no connection;
`kernel.network.post_client` does, after the same checks. Redirects are followed only where the caller says
so, each hop checked like the first. Bodies are counted while they arrive and never decompressed.

A failure is a `FetchError`. Its message names the kind of failure and no detail of the network.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from pillarbox.kernel.network import dns
from pillarbox.kernel.network.address_policy import AddressPolicy, Network
from pillarbox.kernel.network.fetch_result import REDIRECTS, FetchError, FetchLimits, HttpAnswer
from pillarbox.kernel.network.web_address import BadUrl, WebAddress, parse_url

if TYPE_CHECKING:
    from pillarbox.kernel.network.outbound_session import OutboundSession

USER_AGENT = "Pillarbox"
SAFE_METHODS = frozenset({"GET", "HEAD"})

JUDGED_SECONDS = 1.0
"""The rules are fixed; which addresses are this machine's own changes seldom. The socket asks again."""

JUDGED_KEPT = 10_000


class HostResolver(Protocol):
    """Where host names are looked up."""

    async def addresses(self, host: str) -> Sequence[str]:
        """The IP addresses of a host; none, or OSError, when it has none."""
        ...


class SystemAddresses:
    """The system's own look-up, with its hosts file."""

    async def addresses(self, host: str) -> Sequence[str]:
        found = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
        return list(dict.fromkeys(str(entry[4][0]) for entry in found))


class DnsAddresses:
    """Look-ups by the resolver that the rest of the program uses, after the names of a hosts file.

    Unlike the system's look-up it takes no thread, so hosts with a dead DNS server do not delay other
    fetches.
    """

    def __init__(self, resolver: dns.Resolver, hosts: Path = Path("/etc/hosts")) -> None:
        self._resolver = resolver
        self._local = {"localhost": ["127.0.0.1", "::1"]} | _read_hosts(hosts)

    async def addresses(self, host: str) -> Sequence[str]:
        local = self._local.get(host)
        return local if local else (await self._resolver.addresses(host, ipv6=True)).records


class Outbound:
    """Fetches URLs that users chose. One per event loop."""

    def __init__(
        self,
        resolver: HostResolver | None = None,
        allow: Sequence[Network] = (),
        *,
        tls: ssl.SSLContext | None = None,
        policy: AddressPolicy | None = None,
    ) -> None:
        self._resolver = resolver or SystemAddresses()
        self._policy = policy or AddressPolicy(allow)
        self.tls: ssl.SSLContext | bool = tls or True
        self._judged: dict[tuple[str, int], float] = {}
        self._session: OutboundSession | None = None

    async def fetch(
        self,
        method: str,
        url: str,
        *,
        max_bytes: int,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
        connect_timeout: float = 10.0,
        total_timeout: float = 30.0,
        redirects: int = 0,
        cut: bool = False,
    ) -> HttpAnswer:
        """The answer to one request, whatever its status; raises FetchError.

        A body longer than `max_bytes` is a failure, or with `cut` ends there and is not read on. Up to
        `redirects` redirects are followed (GET and HEAD only); `headers` go to the first origin alone.
        """
        if redirects and method not in SAFE_METHODS:
            raise ValueError("only GET and HEAD may follow redirects")
        limits = FetchLimits(connect_timeout, max_bytes, cut, redirects > 0)
        try:
            async with asyncio.timeout(total_timeout):
                return await self._follow(method, parse_url(url), headers or {}, body, limits, redirects)
        except TimeoutError:
            raise FetchError("timeout") from None
        except BadUrl:
            raise FetchError("url") from None

    async def permitted(self, target: WebAddress) -> Sequence[str]:
        """The addresses of a host, after one look-up, when every one of them may be reached.

        Raises FetchError `refused`, or OSError where the host has none.
        """
        if target.address is not None:
            found: Sequence[str] = [str(target.address)]
        else:
            found = await self._resolver.addresses(target.host)
        if not found:
            raise OSError("no address")
        if not all(self._permits(address, target.port) for address in found):
            raise FetchError("refused")
        return found

    async def close(self) -> None:
        """Give back what is held; a later fetch starts anew."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    def _permits(self, address: str, port: int) -> bool:
        """Whether an address may be reached. Judging costs a socket, so a yes holds for a moment."""
        now = asyncio.get_running_loop().time()
        if self._judged.get((address, port), 0.0) > now:
            return True
        if not self._policy.permits_text(address, port):
            return False
        if len(self._judged) >= JUDGED_KEPT:
            self._judged.clear()
        self._judged[address, port] = now + JUDGED_SECONDS
        return True

    async def _follow(
        self,
        method: str,
        target: WebAddress,
        headers: Mapping[str, str],
        body: bytes | None,
        limits: FetchLimits,
        redirects: int,
    ) -> HttpAnswer:
        for _ in range(redirects + 1):
            answer = await self._once(method, target, headers, body, limits)
            location = answer.headers.get("location")
            if not limits.redirected or answer.status not in REDIRECTS or not location:
                return answer
            origin, target = target.origin, target.join(location)
            headers = headers if target.origin == origin else {}
        raise FetchError("redirects")

    async def _once(
        self,
        method: str,
        target: WebAddress,
        headers: Mapping[str, str],
        body: bytes | None,
        limits: FetchLimits,
    ) -> HttpAnswer:
        if target.address is not None:
            await self.permitted(target)
        session = await self._opened()
        own = {"User-Agent": USER_AGENT, "Accept-Encoding": "identity"}
        return await session.answer(method, target, own | dict(headers), body, limits)

    async def _opened(self) -> OutboundSession:
        if self._session is None:
            await asyncio.to_thread(import_module, f"{__package__}.outbound_session")
            from pillarbox.kernel.network.outbound_session import OutboundSession

            self._session = self._session or OutboundSession(self.permitted, self.open_socket, self.tls)
        return self._session

    def open_socket(self, info: Any) -> socket.socket:
        """A socket for an address that was checked: the last check, in case the others can be bypassed."""
        family, kind, protocol, _, address = info
        if not self._policy.permits_text(address[0], address[1]):
            raise PermissionError("refused")
        made = socket.socket(family, kind, protocol)
        made.setblocking(False)
        return made


def _read_hosts(path: Path) -> dict[str, list[str]]:
    """The names of a hosts file with their addresses; none when it cannot be read."""
    hosts: dict[str, list[str]] = {}
    try:
        lines = path.read_text("utf-8", "replace").splitlines()
    except OSError:
        return hosts
    for line in lines:
        address, *names = line.partition("#")[0].split() or [""]
        for name in names:
            hosts.setdefault(name.lower(), []).append(address)
    return hosts
