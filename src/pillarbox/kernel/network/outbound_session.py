"""The HTTP library behind `kernel.network.outbound`, in a module of its own: it is loaded at the
first fetch, because loading it takes a sixth of the start time and most processes fetch nothing.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from multidict import CIMultiDict

from pillarbox.kernel.network.fetch_result import REDIRECTS, FetchError, FetchLimits, HttpAnswer
from pillarbox.kernel.network.web_address import WebAddress

FAILURE_OF: tuple[tuple[type[BaseException], str], ...] = (
    (TimeoutError, "timeout"),
    (aiohttp.InvalidURL, "url"),
    (aiohttp.ClientConnectorDNSError, "dns"),
    (aiohttp.ClientConnectorCertificateError, "tls"),
    (aiohttp.ClientSSLError, "tls"),
    (ssl.SSLError, "tls"),
    (aiohttp.ClientConnectorError, "connect"),
    (aiohttp.ClientError, "protocol"),
    (OSError, "connect"),
)
"""The first row that matches names the failure."""

Permitted = Callable[[WebAddress], Awaitable[Sequence[str]]]
"""The addresses of a host, when all of them may be reached; FetchError or OSError otherwise."""

NAMED = tuple(row[0] for row in FAILURE_OF)


class OutboundSession:
    """Requests of one `Outbound`, each over a connection of its own."""

    def __init__(
        self,
        permitted: Permitted,
        open_socket: Callable[[Any], socket.socket],
        tls: ssl.SSLContext | bool,
    ) -> None:
        self._tls = tls
        connector = aiohttp.TCPConnector(
            resolver=_CheckedResolver(permitted),
            use_dns_cache=False,
            force_close=True,
            limit=0,
            socket_factory=open_socket,
        )
        self._client = aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            skip_auto_headers=("Content-Type",),
            trust_env=False,
        )

    async def answer(
        self,
        method: str,
        target: WebAddress,
        headers: Mapping[str, str],
        body: bytes | None,
        limits: FetchLimits,
    ) -> HttpAnswer:
        """The answer to one request; FetchError where there is none, or its body is too large."""
        try:
            return await self._answer(method, target, headers, body, limits)
        except NAMED as failure:
            raise FetchError(kind_of(failure)) from None

    async def _answer(
        self,
        method: str,
        target: WebAddress,
        headers: Mapping[str, str],
        body: bytes | None,
        limits: FetchLimits,
    ) -> HttpAnswer:
        response = await self._client.request(
            method,
            target.url,
            headers=CIMultiDict(headers),
            data=body,
            allow_redirects=False,
            timeout=aiohttp.ClientTimeout(total=None, connect=limits.connect),
            ssl=self._tls,
        )
        try:
            if limits.redirected and response.status in REDIRECTS:
                return HttpAnswer(response.status, _flat(response), b"")
            content, was_cut = await read_body(response, limits.most_bytes, cut=limits.cut)
            return HttpAnswer(response.status, _flat(response), content, was_cut)
        finally:
            response.close()

    async def close(self) -> None:
        await self._client.close()


class _CheckedResolver(AbstractResolver):
    """Hands the connector only addresses that may be reached: all of a host's, or none."""

    def __init__(self, permitted: Permitted) -> None:
        self._permitted = permitted

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        target = WebAddress("http", host, port, "/", "", None)
        return [_resolved(host, address, port) for address in await self._permitted(target)]

    async def close(self) -> None:
        return None


def _resolved(host: str, address: str, port: int) -> ResolveResult:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    flags = socket.AI_NUMERICHOST | socket.AI_NUMERICSERV
    return {"hostname": host, "host": address, "port": port, "family": family, "proto": 0, "flags": flags}


async def read_body(response: aiohttp.ClientResponse, limit: int, *, cut: bool) -> tuple[bytes, bool]:
    """The body, and whether it was cut; what comes after `limit` bytes is not read."""
    announced = response.content_length or 0
    if announced > limit and not cut and response.method != "HEAD":
        raise FetchError("too_large")
    parts: list[bytes] = []
    remaining = limit
    async for chunk in response.content.iter_any():
        parts.append(chunk[:remaining])
        if len(chunk) > remaining:
            if not cut:
                raise FetchError("too_large")
            return b"".join(parts), True
        remaining -= len(chunk)
    return b"".join(parts), False


def _flat(response: aiohttp.ClientResponse) -> dict[str, str]:
    flat: dict[str, str] = {}
    for name, value in response.headers.items():
        key = name.lower()
        flat[key] = f"{flat[key]}, {value}" if key in flat else value
    return flat


def kind_of(failure: BaseException) -> str:
    return next(kind for group, kind in FAILURE_OF if isinstance(failure, group))
