"""POST requests that go to the same places again and again, with connections that are kept for a moment.

The rules are those of `kernel.outbound`, and they are asked before every request, on a kept connection
too: the host is looked up, all its addresses are checked, and the request names the address that it goes
to. Connections are kept by address, port and TLS name, so one is used again only for an address that this
look-up gave, and nothing is looked up a second time.

A server may close a kept connection at any moment. A request that met that, and got no byte of an answer,
is sent once more on a new connection: who posts here posts what may arrive twice.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from pillarbox.kernel.outbound import NAMED, Fetched, FetchError, Outbound, kind_of, read_body
from pillarbox.kernel.web_address import WebAddress

KEPT_SECONDS = 4.0
"""Shorter than servers keep connections, which is five seconds with some."""

MOST_ADDRESSES = 4
AUTOMATIC = ("Accept", "Accept-Encoding", "Content-Type", "User-Agent")

Unreached = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError)
Certificate = (aiohttp.ClientConnectorCertificateError, aiohttp.ClientSSLError)
Hung_up = (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError)

_sockets: ContextVar[list[str]] = ContextVar("sockets")
"""The addresses to which this request has opened sockets; none where a kept connection was used."""


@dataclass(frozen=True, slots=True)
class PostLimits:
    """What one request may take: seconds until connected, seconds for everything, bytes of the answer."""

    connect: float = 5.0
    total: float = 15.0
    most_bytes: int = 64 * 1024


class Posts:
    """Posts to URLs that somebody else chose. One per event loop."""

    def __init__(self, outbound: Outbound, limits: PostLimits | None = None) -> None:
        self._outbound = outbound
        self._limits = limits or PostLimits()
        self._tls = outbound.tls if isinstance(outbound.tls, ssl.SSLContext) else _verified()
        self._session: aiohttp.ClientSession | None = None

    async def post(self, target: WebAddress, headers: Mapping[str, str], body: bytes) -> Fetched:
        """The answer, whatever its status and its body up to the limit; raises FetchError.

        `headers` are all that is sent besides Host and Content-Length. Redirects are answers. The time
        counts to the end of the answer or of its part that is read.
        """
        try:
            async with asyncio.timeout(self._limits.total):
                addresses = await self._addresses(target)
                return await self._at_first(addresses, target, headers, body)
        except NAMED as failure:
            raise FetchError(kind_of(failure)) from None

    async def close(self) -> None:
        """Give back what is held; a later request starts anew."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def _addresses(self, target: WebAddress) -> Sequence[str]:
        try:
            return (await self._outbound.permitted(target))[:MOST_ADDRESSES]
        except OSError:
            raise FetchError("dns") from None

    async def _at_first(
        self, addresses: Sequence[str], target: WebAddress, headers: Mapping[str, str], body: bytes
    ) -> Fetched:
        """The answer of the first address with which a connection can be had."""
        *others, last = addresses
        patience = self._limits.connect / len(addresses)
        for address in others:
            try:
                return await self._at(address, target, headers, body, patience)
            except Certificate:
                raise
            except Unreached:
                continue
        return await self._at(last, target, headers, body, patience)

    async def _at(
        self, address: str, target: WebAddress, headers: Mapping[str, str], body: bytes, patience: float
    ) -> Fetched:
        sockets: list[str] = []
        _sockets.set(sockets)
        try:
            return await self._exchange(address, target, headers, body, patience)
        except Hung_up:
            if sockets:
                raise
        return await self._exchange(address, target, headers, body, patience)

    async def _exchange(
        self, address: str, target: WebAddress, headers: Mapping[str, str], body: bytes, patience: float
    ) -> Fetched:
        secured = target.scheme == "https"
        response = await self._opened().request(
            "POST",
            _at_address(target, address),
            headers=CIMultiDict({"Host": target.authority} | dict(headers)),
            data=body,
            allow_redirects=False,
            timeout=aiohttp.ClientTimeout(total=None, connect=patience),
            ssl=self._tls,
            server_hostname=target.host if secured and target.address is None else None,
        )
        try:
            content, was_cut = await read_body(response, self._limits.most_bytes, cut=True)
        except BaseException:
            response.close()
            raise
        if was_cut:
            response.close()
        else:
            response.release()
        return Fetched(response.status, {}, content, was_cut)

    def _open_socket(self, info: Any) -> socket.socket:
        _sockets.get().append(info[4][0])
        return self._outbound.open_socket(info)

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            connector = aiohttp.TCPConnector(
                use_dns_cache=False,
                keepalive_timeout=KEPT_SECONDS,
                limit=0,
                socket_factory=self._open_socket,
            )
            self._session = aiohttp.ClientSession(
                connector=connector,
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
                skip_auto_headers=AUTOMATIC,
                trust_env=False,
            )
        return self._session


def _verified() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


def _at_address(target: WebAddress, address: str) -> URL:
    """The URL with the checked address in the place of the name."""
    host = f"[{address}]" if ":" in address else address
    query = f"?{target.query}" if target.query else ""
    return URL(f"{target.scheme}://{host}:{target.port}{target.path}{query}", encoded=True)
