"""Which servers are authoritative for a domain, and their addresses.

Anybody can write anything into NS records, so at most a few servers of a zone are asked, on public addresses
or those that the operator allowed. A server that repeatedly does not answer is skipped for a while. The
servers of a zone are cached for a minute, so that one check of a domain asks for them once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from ipaddress import ip_address
from typing import Final

from pillarbox.domains.names import registrable
from pillarbox.kernel.clock import Clock
from pillarbox.kernel.network.address_policy import Network, is_own, is_public
from pillarbox.kernel.network.dns_answers import DnsAnswer
from pillarbox.kernel.network.dns_query import Server

MOST_SERVERS: Final = 3
MOST_NAMES: Final = 4
REMEMBERED: Final = 60.0
MOST_REMEMBERED: Final = 10_000
SILENCES: Final = 3
LEFT_ALONE: Final = 30.0

Resolve = Callable[[str, str], Awaitable[DnsAnswer]]
"""Asks the resolvers for the records of a name and type."""


class AuthoritativeServers:
    """Finds the authoritative servers of zones by asking the resolvers."""

    def __init__(self, resolve: Resolve, clock: Clock, allowed: Sequence[Network], port: int) -> None:
        self._resolve = resolve
        self._clock = clock
        self._allowed = tuple(allowed)
        self._port = port
        self._known: dict[str, tuple[float, asyncio.Task[tuple[Server, ...]]]] = {}
        self._silent: dict[str, tuple[int, float]] = {}

    async def of(self, name: str) -> tuple[Server, ...]:
        """Return the servers of the registrable domain that `name` belongs to; empty where none can
        be asked."""
        zone = registrable(name)
        known = self._known.get(zone)
        if known is None or self._clock.boottime() >= known[0]:
            if len(self._known) >= MOST_REMEMBERED:
                self._known.clear()
            until = self._clock.boottime() + REMEMBERED
            known = self._known[zone] = (until, asyncio.create_task(self._find(zone)))
        return await asyncio.shield(known[1])

    async def named(self, names: Sequence[str]) -> tuple[Server, ...]:
        """Return the servers of these names that may be asked, IPv4 first."""
        found = await asyncio.gather(
            *(self._resolve(name, kind) for kind in ("A", "AAAA") for name in names[:MOST_NAMES])
        )
        places = zip([*names[:MOST_NAMES], *names[:MOST_NAMES]], found, strict=True)
        servers = [
            Server(address, self._port, name)
            for name, answer in places
            for address in answer.values
            if self._may_be_asked(address)
        ]
        return tuple(servers[:MOST_SERVERS])

    def answering(self, servers: Sequence[Server]) -> tuple[Server, ...]:
        """Return the servers that are not skipped at the moment."""
        now = self._clock.boottime()
        return tuple(server for server in servers if now >= self._silent.get(server.address, (0, 0.0))[1])

    def note(self, server: Server, *, silent: bool) -> None:
        """Remember whether the server answered."""
        if not silent:
            self._silent.pop(server.address, None)
            return
        if len(self._silent) >= MOST_REMEMBERED:
            self._silent.clear()
        count = self._silent.get(server.address, (0, 0.0))[0] + 1
        until = self._clock.boottime() + LEFT_ALONE if count >= SILENCES else 0.0
        self._silent[server.address] = (count, until)

    async def _find(self, zone: str) -> tuple[Server, ...]:
        return await self.named((await self._resolve(zone, "NS")).values)

    def _may_be_asked(self, text: str) -> bool:
        address = ip_address(text)
        if any(address in network for network in self._allowed):
            return True
        return is_public(address) and not is_own(address)
