"""How the text of a setting becomes a value. Each kind raises WrongValue with the end of a sentence."""

from __future__ import annotations

import base64
import binascii
import ipaddress
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from typing import TypeVar
from urllib.parse import SplitResult, unquote, urlsplit

T = TypeVar("T")

Network = ipaddress.IPv4Network | ipaddress.IPv6Network

SERVER = re.compile(r"(?:\[[0-9A-Fa-f:.]+\]|[^:\[\]]*)(?::(\d{1,5}))?")
"""One server of a database URL: a host, an address or a folder, and a port."""

DURATION = re.compile(r"(\d+)(ms|s|m|h|d)")
DURATION_UNITS = {
    "ms": timedelta(milliseconds=1),
    "s": timedelta(seconds=1),
    "m": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
}
SIZE = re.compile(r"(\d+)\s*(|B|KiB|MiB|GiB|TiB)")
SIZE_UNITS = {"": 1, "B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
LABEL = re.compile(r"(?!-)[a-z0-9-]{1,63}(?<!-)")
API_KEY = re.compile(r"re_[A-Za-z0-9_-]{16,200}")
ADDRESS = re.compile(r"[^\s@<>\"',;:\\]+@([A-Za-z0-9.-]+)")
KEY_ID = re.compile(r"[A-Za-z0-9_.-]{1,32}")
TRUE, FALSE = ("true", "yes", "on", "1"), ("false", "no", "off", "0")


class WrongValue(ValueError):  # noqa: N818 (a value is wrong, the program is not)
    """The message ends the sentence "VALUE …"."""


class RouteKind(StrEnum):
    CAPTURE = "capture"
    DIRECT = "direct"
    RELAY = "relay"


class ProcessRole(StrEnum):
    """A part of the work that a process may take on."""

    API = "api"
    SMTP = "smtp"
    DELIVERY = "delivery"
    WEBHOOKS = "webhooks"
    JOBS = "jobs"


@dataclass(frozen=True, slots=True)
class HostPort:
    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class SubmissionListener:
    """Where submission listens; `implicit_tls` starts with TLS, else STARTTLS is offered."""

    at: HostPort
    implicit_tls: bool

    def __str__(self) -> str:
        return f"tls://{self.at}" if self.implicit_tls else str(self.at)


@dataclass(frozen=True, slots=True)
class Relay:
    """A smarthost. `smtps` starts with TLS; without it STARTTLS is used when offered."""

    host: str
    port: int
    smtps: bool
    user: str | None = None
    password: str | None = None

    def __repr__(self) -> str:
        return f"Relay({self.host}:{self.port})"


@dataclass(frozen=True, slots=True)
class DeliveryRoute:
    """Where accepted mail goes; `relay` is there exactly for the kind RELAY."""

    kind: RouteKind
    relay: Relay | None = None

    @property
    def public(self) -> str:
        """The setting's text without user and password."""
        if self.relay is None:
            return self.kind.value
        scheme = "smtps" if self.relay.smtps else "smtp"
        return f"{self.kind.value}:{scheme}://{HostPort(self.relay.host, self.relay.port)}"


def host_port(text: str, default_port: int | None = None) -> HostPort:
    """Parse `127.0.0.1:8080`, `[::1]:8080` or `name:8080`."""
    match = re.fullmatch(r"(\[[0-9A-Fa-f:.%]+\]|[^\s\[\]:/@]+)(?::(\d{1,5}))?", text)
    if match is None or (match[2] is None and default_port is None):
        raise WrongValue("is not HOST:PORT, for example 127.0.0.1:8080")
    port = int(match[2]) if match[2] else default_port
    assert port is not None
    if port > 65535:
        raise WrongValue("has a port above 65535")
    host = match[1].strip("[]")
    if ":" in host:
        address(host.split("%")[0])
    return HostPort(host, port)


def address(text: str) -> str:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        raise WrongValue("is not an IP address") from None
    return text


def optional(parse: Callable[[str], T]) -> Callable[[str], T | None]:
    """Return a parser for which `off` means no value."""
    return lambda text: None if text == "off" else parse(text)


def each(parse: Callable[[str], T]) -> Callable[[str], tuple[T, ...]]:
    """Return a parser of a list with commas; an empty text is an empty list."""
    return lambda text: tuple(parse(part.strip()) for part in text.split(",")) if text.strip() else ()


def resolver(text: str) -> HostPort:
    """Parse a DNS server by IP address; its port is 53 unless given."""
    if text.count(":") > 1 and not text.startswith("["):
        text = f"[{text}]"
    found = host_port(text, 53)
    address(found.host)
    return found


def submission_listener(text: str) -> SubmissionListener:
    """Parse `HOST:PORT` for STARTTLS, `tls://HOST:PORT` for implicit TLS."""
    if text.startswith("tls://"):
        return SubmissionListener(host_port(text.removeprefix("tls://")), True)
    return SubmissionListener(host_port(text), False)


def submission_listeners(text: str) -> tuple[SubmissionListener, ...]:
    """Parse one or more listeners, or none for `off`."""
    return () if text == "off" else each(submission_listener)(text)


def lmtp_address(text: str) -> HostPort:
    """Parse an address that this machine alone can reach; never port 25, which is for SMTP (RFC 2033, 5)."""
    found = host_port(text)
    try:
        is_local = ipaddress.ip_address(found.host).is_loopback
    except ValueError:
        is_local = False
    if not is_local:
        raise WrongValue(
            "is not a loopback address such as 127.0.0.1:2424; whoever can connect there is believed, "
            "so it is for this machine alone"
        )
    if found.port == 25:
        raise WrongValue("has port 25, where servers expect SMTP")
    return found


def network(text: str) -> Network:
    """Parse a network in CIDR form, or one address."""
    try:
        return ipaddress.ip_network(text)
    except ValueError:
        raise WrongValue("is not a network such as 10.0.0.0/8") from None


def networks(text: str) -> tuple[Network, ...]:
    return () if text == "none" else each(network)(text)


def ports(text: str) -> frozenset[int] | None:
    """Parse a list of port numbers; return None for `any`."""
    return None if text == "any" else frozenset(each(whole_number(1, 65535))(text))


def route(text: str) -> DeliveryRoute:
    """Parse `capture`, `direct` or `relay:smtp://user:password@host:587` (`smtps` for implicit TLS)."""
    kind, _, target = text.partition(":")
    if text in (RouteKind.CAPTURE, RouteKind.DIRECT):
        return DeliveryRoute(RouteKind(text))
    if kind != RouteKind.RELAY or not target:
        raise WrongValue("is not capture, direct or relay:smtp://user:password@host:587")
    return DeliveryRoute(RouteKind.RELAY, relay(target))


def relay(text: str) -> Relay:
    """Parse the smarthost of a URL; user and password are percent-decoded and come together."""
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        raise WrongValue("holds a relay URL that cannot be read") from None
    if parts.scheme not in ("smtp", "smtps") or not parts.hostname:
        raise WrongValue("holds a relay URL that is not smtp://host:port or smtps://host:port")
    if parts.path not in ("", "/") or parts.query or parts.fragment:
        raise WrongValue("holds a relay URL with more than user, password, host and port")
    if (parts.username is None) != (parts.password is None):
        raise WrongValue("holds a relay URL with a user or a password alone")
    smtps = parts.scheme == "smtps"
    return Relay(
        host=parts.hostname,
        port=port or (465 if smtps else 587),
        smtps=smtps,
        user=None if parts.username is None else unquote(parts.username),
        password=None if parts.password is None else unquote(parts.password),
    )


def domain(text: str) -> str:
    """Parse a host name of letters, digits and hyphens, in lower case."""
    name = text.lower().rstrip(".")
    if len(name) > 253 or not all(LABEL.fullmatch(label) for label in name.split(".")):
        raise WrongValue("is not a host name")
    return name


def domains(text: str) -> tuple[str, ...]:
    return () if text == "none" else each(domain)(text)


def email_address(text: str) -> str:
    match = ADDRESS.fullmatch(text)
    if match is None or len(text) > 254:
        raise WrongValue("is not an email address")
    domain(match[1])
    return text


def url_parts(text: str) -> SplitResult:
    """Return the parts of a URL; brackets without an address in them are none."""
    try:
        return urlsplit(text)
    except ValueError:
        raise WrongValue("is not a URL") from None


def public_url(text: str) -> str:
    """Parse the base of links: http or https, no path, no slash at the end."""
    parts = url_parts(text)
    try:
        _ = parts.port
    except ValueError:
        raise WrongValue("has a port that is none") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise WrongValue("is not a URL such as https://mail.example.com")
    if parts.path not in ("", "/") or parts.query or parts.fragment or parts.username is not None:
        raise WrongValue("must not have a path, a query or a user")
    return text.rstrip("/")


def database_url(text: str) -> str:
    if url_parts(text).scheme not in ("postgresql", "postgres"):
        raise WrongValue("is not a URL such as postgresql://user:password@host/database")
    for server in url_parts(text).netloc.rpartition("@")[2].split(","):
        place = SERVER.fullmatch(server)
        if place is None or int(place[1] or 0) > 65535:
            raise WrongValue("has a host or a port that is none")
    return text


def blob_url(text: str) -> str:
    if url_parts(text).scheme not in ("file", "s3", "gs", "az"):
        raise WrongValue("is not a URL that starts with file:, s3://, gs:// or az://")
    return text


def whole_number(least: int, limit: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not re.fullmatch(r"\d{1,10}", text) or not least <= int(text) <= limit:
            raise WrongValue(f"is not a whole number from {least} to {limit}")
        return int(text)

    return parse


def duration(text: str) -> timedelta:
    """Parse `90s`, `15m`, `96h`, `4d`, or several parts as in `1h30m`; longer than nothing."""
    parts = DURATION.findall(text)
    total = sum((int(number) * DURATION_UNITS[unit] for number, unit in parts), timedelta())
    if "".join(number + unit for number, unit in parts) != text or not total:
        raise WrongValue("is not a duration such as 30s, 15m, 96h or 4d")
    return total


def size(text: str) -> int:
    """Parse a number of bytes, alone or with KiB, MiB, GiB or TiB."""
    match = SIZE.fullmatch(text)
    if match is None:
        raise WrongValue("is not a size such as 512MiB or 1GiB")
    return int(match[1]) * SIZE_UNITS[match[2]]


def switch(text: str) -> bool:
    if text.lower() in TRUE:
        return True
    if text.lower() in FALSE:
        return False
    raise WrongValue("is not true or false")


def one_of(*words: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text not in words:
            raise WrongValue(f"is not one of {', '.join(words)}")
        return text

    return parse


def roles(text: str) -> tuple[ProcessRole, ...]:
    """Return the roles named, each once, in the order of the table."""
    names = {part.strip() for part in text.split(",")}
    if text == "all":
        return tuple(ProcessRole)
    if unknown := sorted(names - set(ProcessRole)):
        raise WrongValue(f"names the unknown role {unknown[0]!r}; the roles are {', '.join(ProcessRole)}")
    return tuple(role for role in ProcessRole if role in names)


def api_key(text: str) -> str:
    if not API_KEY.fullmatch(text):
        raise WrongValue("is not an API key: re_ and at least 16 letters, digits or underscores")
    return text


def key_ring(text: str) -> str:
    """Parse `id:base64key[,id:base64key…]`, each key of 32 bytes; the first one is used for new secrets."""
    seen = set()
    for part in text.split(","):
        key_id, _, encoded = part.strip().partition(":")
        try:
            key = base64.b64decode(encoded, validate=True)
        except (binascii.Error, ValueError):
            key = b""
        if not KEY_ID.fullmatch(key_id) or len(key) != 32 or key_id in seen:
            raise WrongValue("is not a key ring: id:base64key, with 32 bytes in each key and each id once")
        seen.add(key_id)
    return text


def folder(text: str) -> Path:
    return Path(text).expanduser().absolute()


def readable_file(text: str) -> Path:
    path = folder(text)
    try:
        with path.open("rb"):
            return path
    except OSError as error:
        raise WrongValue(f"cannot be read: {error.strerror}") from None


def program_folder(text: str) -> Path:
    path = folder(text)
    if not (path / "postgres").exists():
        raise WrongValue("does not hold the program postgres")
    return path


def txt_key(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9_.-]{1,63}", text):
        raise WrongValue("is not a name of letters, digits, dots, hyphens and underscores")
    return text


def spf_record(text: str) -> str:
    if not re.fullmatch(r"v=spf1( [\x21-\x7e]+)*", text) or '"' in text or len(text) > 450:
        raise WrongValue("is not an SPF record such as v=spf1 a:mail.example.com ~all")
    return text
