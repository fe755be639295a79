"""Where host names of outgoing HTTP requests are looked up."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from pillarbox.kernel.network.dns import Resolver


class HostResolver(Protocol):
    """Where host names are looked up."""

    async def addresses(self, host: str) -> Sequence[str]:
        """Return the IP addresses of a host; none, or OSError, when it has none."""
        ...


class SystemAddresses:
    """The system's own look-up, with its hosts file."""

    async def addresses(self, host: str) -> Sequence[str]:
        found = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
        return list(dict.fromkeys(str(entry[4][0]) for entry in found))


class DnsAddresses:
    """Look-ups by the resolver that the rest of the program uses, after the names of a hosts file.

    Unlike the system's look-up it takes no thread, so hosts with a dead DNS server do not delay other
    requests.
    """

    def __init__(self, resolver: Resolver, hosts: Path = Path("/etc/hosts")) -> None:
        self._resolver = resolver
        self._local = {"localhost": ["127.0.0.1", "::1"]} | _read_hosts(hosts)

    async def addresses(self, host: str) -> Sequence[str]:
        local = self._local.get(host)
        return local if local else (await self._resolver.addresses(host, ipv6=True)).records


def _read_hosts(path: Path) -> dict[str, list[str]]:
    """Return the names of a hosts file with their addresses; none when it cannot be read."""
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
