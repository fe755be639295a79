"""Which addresses this machine may connect to on behalf of users (WH-06).

A URL comes from a user, so it must not reach what only this machine can reach: the machine itself, its
network, the cloud's metadata service. Everything that is not plain public unicast is refused, unless the
operator's list (`--allow-private`) names it; a named network may be reached on every port.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

FORBIDDEN = {
    "0.0.0.0/8": "this network",
    "10.0.0.0/8": "private",
    "100.64.0.0/10": "shared between carriers",
    "127.0.0.0/8": "loopback",
    "169.254.0.0/16": "link-local, metadata services",
    "172.16.0.0/12": "private",
    "192.0.0.0/24": "protocol assignments",
    "192.0.2.0/24": "documentation",
    "192.88.99.0/24": "6to4 relays",
    "192.168.0.0/16": "private",
    "198.18.0.0/15": "benchmarks",
    "198.51.100.0/24": "documentation",
    "203.0.113.0/24": "documentation",
    "224.0.0.0/4": "multicast",
    "240.0.0.0/4": "reserved, broadcast",
    "::/3": "unspecified, loopback, IPv4-compatible, IPv4-mapped, NAT64",
    "2001::/23": "Teredo, ORCHID, benchmarks and other protocol assignments",
    "2001:db8::/32": "documentation",
    "2002::/16": "6to4",
    "3fff::/20": "documentation",
    "4000::/2": "not global unicast: segment routing and unassigned",
    "8000::/1": "not global unicast: unique local, link-local, site-local, multicast",
}
"""From the registries of special-purpose addresses (RFC 6890)."""

LOW_PORTS = frozenset({80, 443})
FIRST_FREE_PORT = 1024

_FORBIDDEN = [ip_network(text) for text in FORBIDDEN]


class AddressPolicy:
    """The operator's policy. `own` says whether an address is one of this machine's, `ports` which ports
    of public addresses may be reached."""

    __slots__ = ("_allow", "_own", "_ports")

    def __init__(
        self,
        allow: Sequence[Network] = (),
        own: Callable[[Address], bool] | None = None,
        ports: Callable[[int], bool] | None = None,
    ) -> None:
        self._allow = tuple(allow)
        self._own = own or is_own
        self._ports = ports or is_open

    def permits(self, address: Address, port: int) -> bool:
        """Return whether a connection to this address and port may be made."""
        if any(address in network for network in self._allow):
            return True
        return is_public(address) and self._ports(port) and not self._own(address)

    def permits_text(self, address: str, port: int) -> bool:
        """Return whether the address in a text is permitted; what is no address is not."""
        try:
            return self.permits(ip_address(address), port)
        except ValueError:
            return False


def is_public(address: Address) -> bool:
    """Return whether an address is plain public unicast."""
    if isinstance(address, IPv6Address) and address.scope_id is not None:
        return False
    return not any(address in network for network in _FORBIDDEN)


def is_open(port: int) -> bool:
    """Return whether the port is 80, 443 or one that needs no privilege; never 25 and the other
    old services."""
    return port in LOW_PORTS or FIRST_FREE_PORT <= port <= 65535


def is_own(address: Address) -> bool:
    """Return whether a socket can be bound to the address, so that it is one of this machine's."""
    return _binds(address) and not _binds_anything()


def _binds(address: Address) -> bool:
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind((str(address), 0))
    except OSError:
        return False
    return True


@lru_cache(maxsize=1)
def _binds_anything() -> bool:
    """Return whether the kernel lets sockets bind to foreign addresses, so that binding tells nothing."""
    return _binds(IPv4Address("192.0.2.1"))
