"""SPF records as values (RFC 7208, 4.5, 4.6 and 5): a record is wholly right or wholly wrong."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from typing import Final

from pillarbox.mail.authentication import spf_macros

VERSION: Final = "v=spf1"
QUALIFIERS: Final = {"+": "pass", "-": "fail", "~": "softfail", "?": "neutral"}
MECHANISMS: Final = ("all", "include", "a", "mx", "ptr", "ip4", "ip6", "exists")

Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_MODIFIER = re.compile(r"([A-Za-z][A-Za-z0-9_.-]*)=(.*)", re.DOTALL)
_MECHANISM = re.compile(r"([+?~-]?)([A-Za-z0-9]+)(?::(.*?))?((?:/[0-9]+)?(?://[0-9]+)?)", re.DOTALL)
_PREFIX = re.compile(r"0|[1-9][0-9]{0,2}")


class RecordError(ValueError):
    """A record that may not be used; the message says where it is wrong."""


@dataclass(frozen=True, slots=True)
class Mechanism:
    """One directive: the result when it matches, its name, and what it looks at."""

    result: str
    name: str
    target: str | None = None
    network: Network | None = None
    prefix4: int = 32
    prefix6: int = 128

    def __str__(self) -> str:
        return f"{self.name}:{self.target or self.network}" if self.target or self.network else self.name


@dataclass(frozen=True, slots=True)
class SpfRecord:
    """The directives in order, and the modifiers that count."""

    mechanisms: tuple[Mechanism, ...]
    redirect: str | None
    explanation: str | None


def is_spf(text: str) -> bool:
    """Return whether a TXT record is meant as an SPF record (4.5)."""
    start = text[: len(VERSION)].lower()
    return start == VERSION and text[len(VERSION) : len(VERSION) + 1] in ("", " ")


def parse(text: str) -> SpfRecord:
    """Return the record of this text, which `is_spf`; raise RecordError for any syntax error anywhere in
    it (4.6)."""
    if not text.isascii():
        raise RecordError("the record holds characters beyond ASCII")
    mechanisms: list[Mechanism] = []
    modifiers: dict[str, str] = {}
    for term in text[len(VERSION) :].split(" "):
        modifier = _MODIFIER.fullmatch(term)
        if modifier is not None:
            _take_modifier(modifiers, modifier[1].lower(), modifier[2])
        elif term:
            mechanisms.append(_mechanism(term))
    return SpfRecord(tuple(mechanisms), modifiers.get("redirect"), modifiers.get("exp"))


def _take_modifier(modifiers: dict[str, str], name: str, value: str) -> None:
    if name in ("redirect", "exp"):
        if name in modifiers:
            raise RecordError(f"{name}= occurs twice")
        modifiers[name] = _domain_spec(value)
    elif not spf_macros.MACRO_STRING.fullmatch(value) or not spf_macros.has_valid_numbers(value):
        raise RecordError(f"the value of {name}= is no macro string")


def _mechanism(term: str) -> Mechanism:
    found = _MECHANISM.fullmatch(term)
    name = found[2].lower() if found else ""
    if found is None or name not in MECHANISMS:
        raise RecordError(f"unknown mechanism in {term[:80]!r}")
    result = QUALIFIERS[found[1] or "+"]
    target, prefixes = found[3], found[4]
    if name in ("ip4", "ip6"):
        return Mechanism(result, name, network=_network(name, target, prefixes))
    if name in ("a", "mx"):
        prefix4, prefix6 = _prefixes(prefixes)
        target = None if target is None else _domain_spec(target)
        return Mechanism(result, name, target, prefix4=prefix4, prefix6=prefix6)
    # Only a and mx have prefixes; elsewhere a slash belongs to the domain-spec, or is wrong.
    whole = None if target is None else target + prefixes
    has_argument = whole is not None
    if (prefixes and target is None) or (name != "ptr" and has_argument == (name == "all")):
        raise RecordError(f"wrong argument of {name}")
    return Mechanism(result, name, None if whole is None else _domain_spec(whole))


def _domain_spec(text: str) -> str:
    if not spf_macros.is_domain_spec(text) or not spf_macros.has_valid_numbers(text):
        raise RecordError(f"{text[:80]!r} is no domain name")
    return text


def _prefixes(text: str) -> tuple[int, int]:
    """Return the prefix lengths of `/24//64`; each may be missing."""
    first, _, second = text.partition("//")
    first = first.removeprefix("/")
    return _prefix(first, 32) if first else 32, _prefix(second, 128) if second else 128


def _prefix(text: str, limit: int) -> int:
    if not _PREFIX.fullmatch(text) or int(text) > limit:
        raise RecordError(f"/{text} is no prefix length")
    return int(text)


def _network(name: str, address: str | None, prefixes: str) -> Network:
    if not address or prefixes.startswith("//") or prefixes.count("/") > 1:
        raise RecordError(f"{name} needs an address")
    try:
        if name == "ip4":
            ip4 = ipaddress.IPv4Address(address)
            return ipaddress.IPv4Network((ip4, _prefix(prefixes[1:] or "32", 32)), strict=False)
        ip6 = ipaddress.IPv6Address(address)
        return ipaddress.IPv6Network((ip6, _prefix(prefixes[1:] or "128", 128)), strict=False)
    except ipaddress.AddressValueError:
        raise RecordError(f"{address[:80]!r} is no address for {name}") from None
