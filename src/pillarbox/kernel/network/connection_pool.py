"""Connections to HTTP servers that stay open for a moment after an answer.

They are kept by address, port and TLS name, so one is used again only for an address that the look-up of the
new request gave.
"""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from pillarbox.kernel.network.http_connection import HttpConnection


class HttpEndpoint(NamedTuple):
    """Where a connection leads; `tls_name` is whose certificate is wanted, None without TLS."""

    address: str
    port: int
    tls_name: str | None


class HttpConnectionPool:
    """Keep connections of one event loop, and close those that nobody uses in time."""

    def __init__(self) -> None:
        self._kept: dict[HttpEndpoint, list[tuple[float, HttpConnection]]] = {}
        self._sweep: asyncio.TimerHandle | None = None

    def take(self, endpoint: HttpEndpoint) -> HttpConnection | None:
        """Give the connection that was used last, if one is fit."""
        kept, now = self._kept.get(endpoint), asyncio.get_running_loop().time()
        while kept:
            until, connection = kept.pop()
            if connection.is_free and now < until:
                return connection
            connection.close()
        return None

    def keep(self, endpoint: HttpEndpoint, connection: HttpConnection, seconds: float) -> None:
        """Keep a free connection for so long."""
        loop = asyncio.get_running_loop()
        self._kept.setdefault(endpoint, []).append((loop.time() + seconds, connection))
        if self._sweep is None:
            self._sweep = loop.call_later(seconds, self._close_old, seconds)

    def close(self) -> None:
        """Close all of them; later ones are kept as before."""
        kept, self._kept = self._kept, {}
        for connections in kept.values():
            for _, connection in connections:
                connection.close()
        if self._sweep is not None:
            self._sweep.cancel()
            self._sweep = None

    def _close_old(self, seconds: float) -> None:
        """Close the connections that nobody has used for long enough."""
        loop = asyncio.get_running_loop()
        now, self._sweep = loop.time(), None
        for endpoint, connections in list(self._kept.items()):
            for until, connection in connections:
                if until <= now:
                    connection.close()
            fit = [kept for kept in connections if kept[0] > now and kept[1].is_free]
            if fit:
                self._kept[endpoint] = fit
            else:
                del self._kept[endpoint]
        if self._kept:
            self._sweep = loop.call_later(seconds / 4, self._close_old, seconds)
