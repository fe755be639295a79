"""Listening sockets: bound once by the supervisor, inherited by every worker."""

from __future__ import annotations

import errno
import socket
from collections.abc import Sequence

from pillarbox.kernel.settings.kinds import HostPort, SubmissionListener

HTTP, SMTP, LMTP = "http", "smtp", "lmtp"

ACCEPTED_AT_ONCE = 16
"""Connections that are accepted in one turn of the loop. libuv takes one of each descriptor a turn:
with one, whoever comes behind four hundred others waits for four hundred turns of a busy loop."""


REASONS = {
    errno.EADDRINUSE: "another program uses this port",
    errno.EACCES: "ports below 1024 need root or CAP_NET_BIND_SERVICE",
    errno.EADDRNOTAVAIL: "this machine does not have this address",
}


class ListenError(Exception):
    """A listener cannot be opened; the message is one sentence for the operator."""


def bind(name: str, at: HostPort) -> socket.socket:
    """A bound stream socket that does not listen yet: until a worker serves it, connecting is refused."""
    try:
        found = socket.getaddrinfo(at.host, at.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, address = found[0]
        listener = socket.socket(family, kind, protocol)
    except OSError as error:
        raise ListenError(f"The address {at} ({name}) cannot be used: {error.strerror}.") from None
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        listener.bind(address)
    except OSError as error:
        listener.close()
        raise ListenError(
            f"Cannot listen on {at} ({name}): {REASONS.get(error.errno or 0, error.strerror)}."
        ) from None
    return listener


def with_duplicates(listener: socket.socket) -> list[socket.socket]:
    """The socket and its duplicates, so many that `ACCEPTED_AT_ONCE` connections are accepted together."""
    return [listener, *(listener.dup() for _ in range(ACCEPTED_AT_ONCE - 1))]


def bound_at(listener: socket.socket, asked: HostPort) -> HostPort:
    """The address asked for, with the port that the system chose."""
    return HostPort(asked.host, listener.getsockname()[1])


def submission_names(listeners: Sequence[SubmissionListener]) -> list[str]:
    """A name for each submission listener: `submission`, with implicit TLS `submissions` as in RFC 8314; from
    the second of a kind on with a number."""
    names: list[str] = []
    for listener in listeners:
        kind = "submissions" if listener.implicit_tls else "submission"
        number = sum(name.partition("-")[0] == kind for name in names) + 1
        names.append(kind if number == 1 else f"{kind}-{number}")
    return names
