"""Listening sockets: bound once by the supervisor, inherited by every worker."""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterator, Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address
from itertools import combinations

from pillarbox.kernel.settings.kinds import HostPort, ProcessRole, SubmissionListener
from pillarbox.kernel.settings.settings import ConfigError, Settings

HTTP, SMTP, LMTP = "http", "smtp", "lmtp"

ACCEPTED_AT_ONCE = 16
"""Connections that are accepted in one turn of the loop. libuv takes one of each descriptor a turn: with one,
a client behind four hundred others waits for four hundred turns of a busy loop."""


REASONS = {
    errno.EADDRINUSE: "another program uses this port",
    errno.EACCES: "ports below 1024 need root or CAP_NET_BIND_SERVICE",
    errno.EADDRNOTAVAIL: "this machine does not have this address",
}


class ListenError(Exception):
    """A listener cannot be opened; the message is one sentence for the operator."""


def bind(name: str, host_port: HostPort) -> socket.socket:
    """Return a bound stream socket that does not listen yet: until a worker serves it, connecting
    is refused."""
    try:
        found = socket.getaddrinfo(
            host_port.host, host_port.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        family, kind, protocol, _, address = found[0]
        listener = socket.socket(family, kind, protocol)
    except OSError as error:
        raise ListenError(f"The address {host_port} ({name}) cannot be used: {error.strerror}.") from None
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        listener.bind(address)
    except OSError as error:
        listener.close()
        raise ListenError(
            f"Cannot listen on {host_port} ({name}): {REASONS.get(error.errno or 0, error.strerror)}."
        ) from None
    return listener


def refuse_shared_ports(settings: Settings) -> None:
    """Raise ConfigError where two listeners of this machine would share a port: the system binds both, and
    refuses the second only when a worker listens on it."""
    for (flag, at), (other_flag, other) in combinations(opened(settings), 2):
        if at.port and at.port == other.port and _overlap(_address(at), _address(other)):
            raise ConfigError(
                f"{flag} {at} and {other_flag} {other} are one port; give each listener its own."
            )


def opened(settings: Settings) -> Iterator[tuple[str, HostPort]]:
    """Yield the listeners that the roles of this machine open, each with its flag."""
    if ProcessRole.API in settings.roles:
        yield "--http", settings.http
    if ProcessRole.SMTP in settings.roles:
        if settings.smtp is not None:
            yield "--smtp", settings.smtp
        for listener in settings.submission:
            yield "--submission", listener.at
        if settings.lmtp is not None:
            yield "--lmtp", settings.lmtp
    if settings.metrics is not None:
        yield "--metrics", settings.metrics


def _address(address: HostPort) -> IPv4Address | IPv6Address | None:
    """Return the address that `bind` would take; None where it would refuse the name."""
    try:
        found = socket.getaddrinfo(
            address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
    except OSError:
        return None
    return ip_address(found[0][4][0])


def _overlap(
    address_value: IPv4Address | IPv6Address | None, other: IPv4Address | IPv6Address | None
) -> bool:
    """Return whether a client could mean both: equal, or one of them is a wildcard (`::` is that of
    IPv4 too)."""
    if address_value is None or other is None:
        return False
    wildcards = [address for address in (address_value, other) if address.is_unspecified]
    return address_value == other or any(
        address.version == 6 or address_value.version == other.version for address in wildcards
    )


def with_duplicates(listener: socket.socket) -> list[socket.socket]:
    """Return the socket and its duplicates, so many that `ACCEPTED_AT_ONCE` connections are
    accepted together."""
    return [listener, *(listener.dup() for _ in range(ACCEPTED_AT_ONCE - 1))]


def bound_at(listener: socket.socket, asked: HostPort) -> HostPort:
    """Return the address asked for, with the port that the system chose."""
    return HostPort(asked.host, listener.getsockname()[1])


def submission_names(listeners: Sequence[SubmissionListener]) -> list[str]:
    """Return a name for each submission listener: `submission`, with implicit TLS `submissions` as in RFC
    8314; from the second of a kind on with a number."""
    names: list[str] = []
    for listener in listeners:
        kind = "submissions" if listener.implicit_tls else "submission"
        number = sum(name.partition("-")[0] == kind for name in names) + 1
        names.append(kind if number == 1 else f"{kind}-{number}")
    return names
