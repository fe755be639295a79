"""Finds the address of a client, where proxies may name the clients that they speak for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

Network = IPv4Network | IPv6Network
Address = IPv4Address | IPv6Address


def client_address(peer: str, forwarded: Iterable[bytes], trusted: Sequence[Network]) -> str:
    """Return the nearest address that is not a trusted proxy's.

    `X-Forwarded-For` is read from the right, one hop for each proxy that is trusted; what an untrusted
    client wrote there itself is never reached (standards API-04).
    """
    if not trusted or not _is_trusted(peer, trusted):
        return peer
    hops = b",".join(forwarded).decode("latin-1").split(",")
    nearest = peer
    for hop in reversed(hops):
        address = _parsed(hop.strip())
        if address is None:
            return nearest
        nearest = str(address)
        if not _is_trusted(nearest, trusted):
            return nearest
    return nearest


@lru_cache(maxsize=4096)
def client_of(peer: str) -> str:
    """Return the network that counts as one client: an IPv4 address, or the /64 of an IPv6 one."""
    try:
        address = ip_address(peer.partition("%")[0])
    except ValueError:
        return peer
    if address.version == 4:
        return peer
    mapped = address.ipv4_mapped
    return str(mapped) if mapped is not None else address.exploded[:19]


def _is_trusted(text: str, trusted: Sequence[Network]) -> bool:
    address = _parsed(text)
    return address is not None and any(address in network for network in trusted)


def _parsed(text: str) -> Address | None:
    try:
        address = ip_address(text)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address
