"""The one HTTP client for the outside (architecture 2.9; WH-06, WH-07, WH-08).

Webhooks, remote attachments, links of drafts, client metadata documents, logos and MTA-STS policies are
requested here and nowhere else. A host is looked up once; every address that comes back is checked, and the
connection goes to one of those addresses, so a name that changes its address between check and connection
gains nothing. TLS still verifies the name. The address is checked once more where its socket is made.

The rules are applied before every request, on a kept connection too. Nothing is taken from the environment
(proxies, netrc), and no cookies are kept. Redirects are followed only where the caller says so, each hop
checked like the first. Bodies are counted while they arrive and never decompressed.

A server may close a kept connection at any moment, or send an unrequested answer on it. A request that met
that, and got no head of an answer, is sent once more on a new connection. So only requests that may arrive
twice have limits that keep connections.

A failure is a `FetchError`. Its message names the kind of failure and no detail of the network.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Mapping, Sequence

from pillarbox.kernel.network.address_policy import AddressPolicy, Network
from pillarbox.kernel.network.connection_pool import HttpConnectionPool, HttpEndpoint
from pillarbox.kernel.network.fetch_result import REDIRECTS, FetchError, HttpAnswer, HttpLimits
from pillarbox.kernel.network.host_addresses import HostResolver, SystemAddresses
from pillarbox.kernel.network.http_connection import HttpConnection, NoAnswer
from pillarbox.kernel.network.web_address import BadUrl, WebAddress, parse_url

FETCH_HEADERS = {"User-Agent": "Pillarbox", "Accept-Encoding": "identity", "Accept": "*/*"}
"""The headers of a fetch besides Host, unless the caller gives another value."""

MAX_ADDRESSES = 4
"""Addresses of a host that are tried in turn; each has its share of the time to connect."""

ADDRESS_CHECK_SECONDS = 1.0
"""The rules are fixed; which addresses are this machine's own changes seldom. The socket checks again."""

CHECKED_ADDRESSES = 10_000


class Outbound:
    """Requests URLs that users chose. One per event loop."""

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
        self._tls = tls
        self._checked: dict[tuple[str, int], float] = {}
        self._connections = HttpConnectionPool()

    async def fetch(
        self,
        method: str,
        url: str,
        limits: HttpLimits,
        *,
        headers: Mapping[str, str] | None = None,
        body: bytes = b"",
    ) -> HttpAnswer:
        """Return the answer to one request, whatever its status; raises FetchError.

        The connection is not used again. `headers` and the body go to the first origin alone.
        """
        if limits.redirects and method not in ("GET", "HEAD"):
            raise ValueError("only GET and HEAD may follow redirects")
        if method == "HEAD" and not limits.is_head_enough:
            raise ValueError("an answer to HEAD has no body to wait for")
        try:
            async with asyncio.timeout(limits.total):
                return await self._follow(method, parse_url(url), headers or {}, body, limits)
        except TimeoutError:
            raise FetchError("timeout") from None
        except BadUrl:
            raise FetchError("url") from None

    async def post(
        self, target: WebAddress, headers: Mapping[str, str], body: bytes, limits: HttpLimits
    ) -> HttpAnswer:
        """Return the answer, whatever its status; raises FetchError.

        `headers` are all that is sent besides Host and Content-Length. A redirect is an answer like others.
        """
        try:
            async with asyncio.timeout(limits.total):
                return await self._answer(target, _head("POST", target, headers, len(body)), body, limits)
        except TimeoutError:
            raise FetchError("timeout") from None

    async def close(self) -> None:
        """Close what is open; a later request starts anew."""
        self._connections.close()

    async def _follow(
        self, method: str, target: WebAddress, headers: Mapping[str, str], body: bytes, limits: HttpLimits
    ) -> HttpAnswer:
        for _ in range(limits.redirects + 1):
            length = len(body) if body or method not in ("GET", "HEAD") else None
            sent = FETCH_HEADERS | dict(headers) | {"Connection": "close"}
            answer = await self._answer(target, _head(method, target, sent, length), body, limits)
            if not limits.redirects or answer.status not in REDIRECTS:
                return answer
            location = answer.headers.get("location")
            if not location:
                return answer
            origin, target = target.origin, target.join(location)
            if target.origin != origin:
                headers, body = {}, b""
        raise FetchError("redirects")

    async def _answer(self, target: WebAddress, head: bytes, body: bytes, limits: HttpLimits) -> HttpAnswer:
        """Return the answer to one request; raises FetchError where there is none that fits the limits."""
        addresses = await self._permitted(target)
        try:
            answer = await self._from_first(addresses, target, head, body, limits)
        except NoAnswer:
            raise FetchError("protocol") from None
        except ssl.SSLError:
            raise FetchError("tls") from None
        except TimeoutError:
            raise FetchError("timeout") from None
        except OSError:
            raise FetchError("connect") from None
        if answer.cut and not limits.cut:
            raise FetchError("too_large")
        return answer

    async def _permitted(self, target: WebAddress) -> Sequence[str]:
        """Return the addresses of a host, after one look-up, when every one of them may be reached."""
        try:
            found = [str(target.address)] if target.address else await self._resolver.addresses(target.host)
        except OSError:
            found = ()
        if not found:
            raise FetchError("dns")
        if not all(self._permits(address, target.port) for address in found):
            raise FetchError("refused")
        return found[:MAX_ADDRESSES]

    def _permits(self, address: str, port: int) -> bool:
        """Return whether an address may be reached. A check costs a socket, so a yes holds for a moment."""
        now = asyncio.get_running_loop().time()
        if self._checked.get((address, port), 0.0) > now:
            return True
        if not self._policy.permits_text(address, port):
            return False
        if len(self._checked) >= CHECKED_ADDRESSES:
            self._checked.clear()
        self._checked[address, port] = now + ADDRESS_CHECK_SECONDS
        return True

    async def _from_first(
        self, addresses: Sequence[str], target: WebAddress, head: bytes, body: bytes, limits: HttpLimits
    ) -> HttpAnswer:
        """Return the answer of the first address with which a connection can be made."""
        connect_timeout = limits.connect / len(addresses)
        tls_name = target.host if target.scheme == "https" else None
        *others, last = [HttpEndpoint(address, target.port, tls_name) for address in addresses]
        for endpoint in others:
            try:
                return await self._at(endpoint, head, body, limits, connect_timeout)
            except ssl.SSLError:
                raise
            except OSError:
                continue
        return await self._at(last, head, body, limits, connect_timeout)

    async def _at(
        self, endpoint: HttpEndpoint, head: bytes, body: bytes, limits: HttpLimits, connect_timeout: float
    ) -> HttpAnswer:
        """Return the answer at an address; raises NoAnswer, or OSError where there is no connection to it."""
        kept = self._connections.take(endpoint) if limits.kept else None
        if kept is not None:
            try:
                return await self._ask(kept, endpoint, head, body, limits)
            except NoAnswer as failure:
                if not failure.headless:
                    raise
        return await self._ask(await self._open(endpoint, connect_timeout), endpoint, head, body, limits)

    async def _ask(
        self, connection: HttpConnection, endpoint: HttpEndpoint, head: bytes, body: bytes, limits: HttpLimits
    ) -> HttpAnswer:
        answer = await connection.ask(head, body, limits)
        if limits.kept and connection.is_free:
            self._connections.keep(endpoint, connection, limits.kept)
        else:
            connection.close()
        return answer

    async def _open(self, endpoint: HttpEndpoint, connect_timeout: float) -> HttpConnection:
        """Connect to an address; its last check, in case the others can be bypassed, is here."""
        loop = asyncio.get_running_loop()
        if not self._policy.permits_text(endpoint.address, endpoint.port):
            raise PermissionError("refused")
        trust = await self._trust() if endpoint.tls_name is not None else None
        opened = socket.socket(socket.AF_INET6 if ":" in endpoint.address else socket.AF_INET)
        try:
            opened.setblocking(False)
            async with asyncio.timeout(connect_timeout):
                await loop.sock_connect(opened, (endpoint.address, endpoint.port))
                _, connection = await loop.create_connection(
                    HttpConnection, sock=opened, ssl=trust, server_hostname=endpoint.tls_name
                )
        except BaseException:
            opened.close()
            raise
        return connection

    async def _trust(self) -> ssl.SSLContext:
        """Return whose certificates count; the system's are many, so they are read at the first use."""
        if self._tls is None:
            made = await asyncio.to_thread(_system_trust)
            self._tls = self._tls or made
        return self._tls


def _head(method: str, target: WebAddress, headers: Mapping[str, str], length: int | None) -> bytes:
    """Return the head of a request; raises FetchError for a field that cannot stand in one."""
    query = f"?{target.query}" if target.query else ""
    fields = {"Host": target.authority} | dict(headers)
    if length is not None:
        fields["Content-Length"] = str(length)
    lines = [f"{name}: {value}" for name, value in fields.items()]
    if any(not line.isascii() or not line.isprintable() for line in lines):
        raise FetchError("header")
    return "\r\n".join([f"{method} {target.path}{query} HTTP/1.1", *lines, "", ""]).encode("ascii")


def _system_trust() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    return context
