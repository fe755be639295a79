"""Decides who may read captured mail (docs/guide/settings.md).

Three checks: the connection comes from this machine or from a network that the operator named; the Host
header is a name of this machine, so no web page can get in through a name of its own that points here (DNS
rebinding); and the caller has the token of this start, from the printed link, from the cookie that the link
leaves, or as a bearer token. What changes something must come from our own pages (UI-06).
"""

from __future__ import annotations

import hmac
from base64 import urlsafe_b64encode
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from ipaddress import IPv4Address, IPv6Address, ip_address
from urllib.parse import urlsplit
from uuid import UUID

from pillarbox.kernel.http.request import Request
from pillarbox.kernel.network.web_address import is_host_header
from pillarbox.kernel.settings.kinds import Network
from pillarbox.kernel.wire.problems import Forbidden

COOKIE = "pillarbox_capture"
ALWAYS_KNOWN = frozenset({"localhost", "127.0.0.1", "::1"})
WILDCARDS = frozenset({"", "0.0.0.0", "::"})  # noqa: S104
LONGEST_TOKEN = 512


class TokenSource(Enum):
    """How a caller showed the token."""

    BEARER = "authorization header"
    COOKIE = "cookie"


class CaptureForbidden(Forbidden):
    """The caller may not read captured mail."""


class NotLocal(CaptureForbidden):
    def __init__(self) -> None:
        super().__init__(
            "Captured mail is shown on this machine only; the setting capture_networks adds others."
        )


class UnknownHost(CaptureForbidden):
    def __init__(self) -> None:
        super().__init__("Captured mail is not shown under this host name.")


class NoToken(CaptureForbidden):
    def __init__(self) -> None:
        super().__init__(
            "The capture token is missing or wrong. Use the link that the start printed, or send the token "
            "of that link as `Authorization: Bearer TOKEN`."
        )


class ForeignPage(CaptureForbidden):
    def __init__(self) -> None:
        super().__init__("The request does not come from the capture page.")


@dataclass(frozen=True, slots=True)
class CaptureAccess:
    """The token of this start, the names of this machine (lower case, no port, no brackets), and the networks
    from which captured mail may be read besides this machine."""

    token: str = field(repr=False)
    known_hosts: frozenset[str] = ALWAYS_KNOWN
    networks: Sequence[Network] = ()

    @classmethod
    def named(
        cls, token: str, hosts: Iterable[str], public_url: str, networks: Sequence[Network] = ()
    ) -> CaptureAccess:
        """Return the access under `hosts` and the host of `public_url` besides the loopback names."""
        names = {host.lower() for host in (*hosts, urlsplit(public_url).hostname or "")}
        return cls(token, ALWAYS_KNOWN | (names - WILDCARDS), networks)

    def admit(self, request: Request) -> TokenSource:
        """Return how the caller showed the token; raises where they did not."""
        self.check_peer_and_host(request)
        authorization = request.header("authorization")
        if authorization is not None:
            scheme, _, token = authorization.strip().partition(" ")
            if scheme.lower() == "bearer" and self.is_token(token.strip()):
                return TokenSource.BEARER
            raise NoToken
        shown = cookie(request)
        if shown is not None and _same(shown, self.derived("cookie")):
            return TokenSource.COOKIE
        raise NoToken

    def admit_change(self, request: Request) -> TokenSource:
        """Admit a request that changes something: with a cookie it must come from our own pages."""
        shown = self.admit(request)
        if shown is TokenSource.COOKIE and not is_same_origin(request):
            raise ForeignPage
        return shown

    def check_peer_and_host(self, request: Request) -> None:
        """Raise where the peer is neither this machine nor in a listed network, or the Host header names no
        host of this machine."""
        address = peer_address(request)
        if address is None or not (
            address.is_loopback or any(address in network for network in self.networks)
        ):
            raise NotLocal
        if host_name(request) not in self.known_hosts:
            raise UnknownHost

    def is_token(self, text: str) -> bool:
        """Return whether this is the token; takes the same time for every wrong one."""
        return len(text) <= LONGEST_TOKEN and _same(text, self.token)

    def derived(self, purpose: str) -> str:
        """Return a secret that only someone with the token can know, of use for one purpose alone."""
        mac = hmac.digest(self.token.encode(), f"capture {purpose}".encode(), "sha256")
        return urlsafe_b64encode(mac[:18]).decode("ascii")

    def picture_key(self, captured_id: UUID, number: int) -> str:
        """Return the key of one part for the frame of its mail, which has no origin and so sends no
        cookie."""
        return self.derived(f"part {captured_id} {number}")

    def is_picture_key(self, text: str | None, captured_id: UUID, number: int) -> bool:
        return text is not None and _same(text, self.picture_key(captured_id, number))

    def is_form_key(self, text: str) -> bool:
        """Return whether a form came from a page of this start."""
        return _same(text, self.derived("form"))

    def cookie_header(self, request: Request) -> str:
        """Return the Set-Cookie value that lets this browser in."""
        secure = "; Secure" if request.scope["scheme"] == "https" else ""
        return f"{COOKIE}={self.derived('cookie')}; Path=/; HttpOnly; SameSite=Strict{secure}"


def origin(request: Request) -> str:
    """Return the scheme and host under which the caller reached us; only after `check_peer_and_host`."""
    return f"{request.scope['scheme']}://{request.header('host') or 'localhost'}"


def is_same_origin(request: Request) -> bool:
    """Return whether the browser says that one of our own pages asks."""
    site = request.header("sec-fetch-site")
    if site is not None:
        return site == "same-origin"
    return request.header("origin") == origin(request)


def peer_address(request: Request) -> IPv4Address | IPv6Address | None:
    """Return the address of the connection itself, whatever its headers say."""
    peer = request.scope.get("client")
    try:
        address = ip_address(peer[0]) if peer else None
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address


def host_name(request: Request) -> str:
    """Return the name in the Host header, lower case, without port and brackets; "" when it is not one."""
    header = request.header("host") or ""
    if not is_host_header(header):
        return ""
    try:
        return urlsplit(f"//{header}").hostname or ""
    except ValueError:
        return ""


def cookie(request: Request) -> str | None:
    """Return the value of our cookie."""
    for pair in (request.header("cookie") or "").split(";"):
        name, _, value = pair.strip().partition("=")
        if name == COOKIE:
            return value
    return None


def _same(given: str, expected: str) -> bool:
    return hmac.compare_digest(given.encode(), expected.encode())
