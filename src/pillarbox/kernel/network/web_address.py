"""URLs from users, read in one way only (WH-06).

Two readings of one URL are how guards are fooled: the check sees one host, the connection goes to another.
So a URL is taken apart here, strictly, and what is requested is put together again from the parts. The
odd spellings of IPv4 that resolvers accept (`2130706433`, `0x7f.1`, `017700000001`) become the address that
they mean, as the WHATWG URL standard says.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import reduce
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from urllib.parse import quote, urljoin

import idna

from pillarbox.kernel.network.address_policy import Address

LONGEST = 8192
PORTS = {"http": 80, "https": 443}

_URL = re.compile(r"(https?)://([^/?#]+)([^?#]*)(?:\?([^#]*))?(?:#.*)?", re.IGNORECASE | re.ASCII)
_AUTHORITY = re.compile(r"(?:\[([0-9A-Fa-f:.]{2,45})\]|([^:\[\]@%]+))(?::([0-9]{0,5}))?")
_FORBIDDEN = re.compile(r"[\x00-\x1f\x7f\\]")
_NAME = re.compile(r"(?=.{1,253}\Z)[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_KEPT = "%/:@!$&'()*+,;=~-._?[]|"


_HOST_HEADER = re.compile(r"(?:[A-Za-z0-9._-]*|\[[0-9A-Fa-f:.]{2,45}\])(?::[0-9]{0,5})?")


def is_host_header(text: str) -> bool:
    """Return whether this may stand in a Host header: a name or an address, and perhaps a port, or nothing.

    Of the characters that RFC 3986 allows in a name only those that occur in names of hosts.
    """
    return _HOST_HEADER.fullmatch(text) is not None


class BadUrl(ValueError):  # noqa: N818
    """Not an http or https URL that can be fetched."""


@dataclass(frozen=True, slots=True)
class WebAddress:
    """A URL in parts: an ASCII host name or a canonical IP address, and an encoded path and query."""

    scheme: str
    host: str
    port: int
    path: str
    query: str
    address: Address | None

    @property
    def origin(self) -> tuple[str, str, int]:
        """Scheme, host and port: who is being asked."""
        return self.scheme, self.host, self.port

    @property
    def authority(self) -> str:
        """Host and port as the Host header has them."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == PORTS[self.scheme] else f"{host}:{self.port}"

    def __str__(self) -> str:
        query = f"?{self.query}" if self.query else ""
        return f"{self.scheme}://{self.authority}{self.path}{query}"

    def join(self, location: str) -> WebAddress:
        """Return where a redirect leads; raise BadUrl."""
        try:
            return parse_url(urljoin(str(self), location))
        except ValueError:
            raise BadUrl("a redirect to something that is no URL") from None


def parse_url(text: str) -> WebAddress:
    """Return the parts of an http or https URL; raise BadUrl. A fragment is dropped, user names
    are refused."""
    text = text.strip(" ")
    match = _URL.fullmatch(text) if len(text) <= LONGEST and not _FORBIDDEN.search(text) else None
    authority = _AUTHORITY.fullmatch(match[2]) if match else None
    if match is None or authority is None:
        raise BadUrl("not an http or https URL")
    scheme = match[1].lower()
    bracketed, name, digits = authority.groups()
    address: Address | None = _ipv6(bracketed) if bracketed else None
    host = str(address) if address else _host(name)
    if address is None and _NUMBER.fullmatch(host.rpartition(".")[2]):
        address = _ipv4(host)
        host = str(address)
    port = int(digits) if digits else PORTS[scheme]
    if not 0 < port < 65536:
        raise BadUrl("no such port")
    return WebAddress(
        scheme=scheme,
        host=host,
        port=port,
        path=_encoded(match[3]) or "/",
        query=_encoded(match[4] or ""),
        address=address,
    )


def _host(name: str) -> str:
    """Return a host name in ASCII and lower case, without a final dot."""
    if not name.isascii():
        try:
            name = idna.encode(name, uts46=True).decode("ascii")
        except (idna.IDNAError, UnicodeError):
            raise BadUrl("not a host name") from None
    name = name.lower().removesuffix(".")
    if not _NAME.fullmatch(name):
        raise BadUrl("not a host name")
    return name


def _ipv6(text: str) -> IPv6Address:
    try:
        return IPv6Address(text)
    except AddressValueError:
        raise BadUrl("not an IPv6 address") from None


def _ipv4(host: str) -> IPv4Address:
    """Return an IPv4 address in any spelling: one to four numbers, the last one fills what is left."""
    parts = host.split(".")
    if len(parts) > 4 or not all(_NUMBER.fullmatch(part) for part in parts):
        raise BadUrl("not an IPv4 address")
    *front, last = [_number(part) for part in parts]
    if any(number > 255 for number in front) or last >= 256 ** (4 - len(front)):
        raise BadUrl("not an IPv4 address")
    high = reduce(lambda total, number: total * 256 + number, front, 0)
    return IPv4Address(high * 256 ** (4 - len(front)) + last)


def _number(text: str) -> int:
    try:
        if text.startswith("0x"):
            return int(text[2:] or "0", 16)
        return int(text, 8 if text.startswith("0") else 10)
    except ValueError:
        raise BadUrl("not a number") from None


def _encoded(text: str) -> str:
    """Return a path or query as it goes on the wire; what is escaped already stays as it is."""
    try:
        return quote(text, safe=_KEPT)
    except UnicodeEncodeError:
        raise BadUrl("not text") from None
