"""POST requests that go to the same places again and again, with connections that are kept for a moment.

The rules are those of `kernel.network.outbound`, and they are asked before every request, on a kept
connection too: the host is looked up, all its addresses are checked, and the request names the address that
it goes to. Connections are kept by address, port and TLS name, so one is used again only for an address
that this look-up gave, and nothing is looked up a second time.

A server may close a kept connection at any moment, or send an unrequested answer on it. A request
that met that, and got no head of an answer, is sent once more on a new connection: who posts here posts
what may arrive twice.

Not through aiohttp, which costs almost three times as much a request (docs/decisions/0018).
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from pillarbox.kernel.network.fetch_result import FetchError, HttpAnswer
from pillarbox.kernel.network.http_connection import HttpConnection, HttpResponse, NoAnswer
from pillarbox.kernel.network.outbound import Outbound
from pillarbox.kernel.network.web_address import WebAddress

MOST_ADDRESSES = 4


@dataclass(frozen=True, slots=True)
class PostLimits:
    """What one request may take: seconds until connected, seconds for everything, bytes of the answer. A
    connection is `kept` for fewer seconds than servers do, which is five with some."""

    connect: float = 5.0
    total: float = 15.0
    most_bytes: int = 64 * 1024
    kept: float = 4.0


class _Endpoint(NamedTuple):
    """Where a connection leads; `name` is whose certificate is wanted, None without TLS."""

    address: str
    port: int
    name: str | None


class PostClient:
    """Posts to URLs that users chose. One per event loop."""

    def __init__(self, outbound: Outbound, limits: PostLimits | None = None) -> None:
        self._outbound = outbound
        self._limits = limits or PostLimits()
        self._kept: dict[_Endpoint, list[tuple[float, HttpConnection]]] = {}
        self._sweep: asyncio.TimerHandle | None = None

    @cached_property
    def _trust(self) -> ssl.SSLContext:
        """Whose certificates count; the system's are many, and a start does not wait for them."""
        return self._outbound.tls if isinstance(self._outbound.tls, ssl.SSLContext) else _verified()

    async def post(self, target: WebAddress, headers: Mapping[str, str], body: bytes) -> HttpAnswer:
        """The answer, whatever its status and its body up to the limit; raises FetchError.

        `headers` are all that is sent besides Host and Content-Length. Redirects are answers. The time
        counts to the end of the answer or of its part that is read.
        """
        request = _head(target, headers, len(body)) + body
        try:
            async with asyncio.timeout(self._limits.total):
                answer = await self._at_first(await self._addresses(target), target, request)
        except TimeoutError:
            raise FetchError("timeout") from None
        except NoAnswer:
            raise FetchError("protocol") from None
        except ssl.SSLError:
            raise FetchError("tls") from None
        except OSError:
            raise FetchError("connect") from None
        return HttpAnswer(answer.status, {}, answer.body, answer.cut)

    async def close(self) -> None:
        """Give back what is held; a later request starts anew."""
        kept, self._kept = self._kept, {}
        for connections in kept.values():
            for _, connection in connections:
                connection.close()
        if self._sweep is not None:
            self._sweep.cancel()
            self._sweep = None

    async def _addresses(self, target: WebAddress) -> Sequence[str]:
        try:
            return (await self._outbound.permitted(target))[:MOST_ADDRESSES]
        except OSError:
            raise FetchError("dns") from None

    async def _at_first(self, addresses: Sequence[str], target: WebAddress, request: bytes) -> HttpResponse:
        """The answer of the first address with which a connection can be had."""
        connect_timeout = self._limits.connect / len(addresses)
        name = target.host if target.scheme == "https" else None
        *others, last = [_Endpoint(address, target.port, name) for address in addresses]
        for endpoint in others:
            try:
                return await self._at(endpoint, request, connect_timeout)
            except ssl.SSLError:
                raise
            except OSError:
                continue
        return await self._at(last, request, connect_timeout)

    async def _at(self, endpoint: _Endpoint, request: bytes, connect_timeout: float) -> HttpResponse:
        """The answer at an address; raises NoAnswer, or OSError where there is no connection to it."""
        kept = self._take(endpoint)
        if kept is not None:
            try:
                return await self._asked(kept, endpoint, request)
            except NoAnswer as failure:
                if not failure.headless:
                    raise
        return await self._asked(await self._open(endpoint, connect_timeout), endpoint, request)

    async def _asked(self, connection: HttpConnection, endpoint: _Endpoint, request: bytes) -> HttpResponse:
        answer = await connection.ask(request)
        if connection.is_free:
            self._keep(connection, endpoint)
        return answer

    async def _open(self, endpoint: _Endpoint, connect_timeout: float) -> HttpConnection:
        loop = asyncio.get_running_loop()
        family = socket.AF_INET6 if ":" in endpoint.address else socket.AF_INET
        at = (endpoint.address, endpoint.port)
        opened = self._outbound.open_socket((family, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", at))
        try:
            async with asyncio.timeout(connect_timeout):
                await loop.sock_connect(opened, at)
                _, connection = await loop.create_connection(
                    lambda: HttpConnection(self._limits.most_bytes),
                    sock=opened,
                    ssl=self._trust if endpoint.name is not None else None,
                    server_hostname=endpoint.name,
                )
        except BaseException:
            opened.close()
            raise
        return connection

    def _take(self, endpoint: _Endpoint) -> HttpConnection | None:
        """The connection that was used last, if one is fit."""
        kept, now = self._kept.get(endpoint), asyncio.get_running_loop().time()
        while kept:
            until, connection = kept.pop()
            if connection.is_free and now < until:
                return connection
            connection.close()
        return None

    def _keep(self, connection: HttpConnection, endpoint: _Endpoint) -> None:
        loop = asyncio.get_running_loop()
        self._kept.setdefault(endpoint, []).append((loop.time() + self._limits.kept, connection))
        if self._sweep is None:
            self._sweep = loop.call_later(self._limits.kept, self._clean)

    def _clean(self) -> None:
        """End the connections that nobody has used for long enough."""
        loop = asyncio.get_running_loop()
        now, self._sweep = loop.time(), None
        for endpoint, connections in list(self._kept.items()):
            for until, connection in connections:
                if until <= now:
                    connection.close()
            fit = [one for one in connections if one[0] > now and one[1].is_free]
            if fit:
                self._kept[endpoint] = fit
            else:
                del self._kept[endpoint]
        if self._kept:
            self._sweep = loop.call_later(self._limits.kept / 4, self._clean)


def _head(target: WebAddress, headers: Mapping[str, str], length: int) -> bytes:
    """The head of a request; everything in it is ASCII and without line ends before it comes here."""
    query = f"?{target.query}" if target.query else ""
    lines = [f"POST {target.path}{query} HTTP/1.1", f"Host: {target.authority}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, f"Content-Length: {length}", "", ""]).encode("ascii")


def _verified() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context
