"""Where the mail for a domain goes: MX, the fallback to addresses, null MX, and what is never reached.

RFC 5321 5.1, RFC 7505, standards OUT-01 to OUT-04. Pure but for the look-ups, which are handed in.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Final, Literal, Protocol, TypeVar

from pillarbox.mail.smtp.reply import SmtpReply, our_reply

T_co = TypeVar("T_co", covariant=True)
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Shuffle = Callable[[list[str]], None]

MAX_HOSTS: Final = 10
MAX_ADDRESSES: Final = 5

_NAME = re.compile(r"(?=.{1,253}\Z)[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*", re.ASCII | re.IGNORECASE)
_TUNNELS: Final = tuple(
    ipaddress.ip_network(net) for net in ("2002::/16", "2001::/32", "64:ff9b::/96", "64:ff9b:1::/48", "::/96")
)
_GLOBAL_V6: Final = ipaddress.ip_network("2000::/3")


class LookupResult(Protocol[T_co]):
    """The result of a look-up: records only when `found`; `failed` says nothing about the name."""

    @property
    def status(self) -> Literal["found", "no_name", "no_data", "failed"]: ...

    @property
    def records(self) -> Sequence[T_co]: ...


class MxLookup(Protocol):
    """The two questions that routing asks of DNS; CNAMEs are followed by whoever answers."""

    async def mx(self, name: str) -> LookupResult[tuple[int, str]]:
        """Return the preference and exchange of each MX record; a null MX is `(0, ".")`."""
        ...

    async def addresses(self, name: str, *, ipv6: bool = False) -> LookupResult[str]:
        """Return the IPv4 addresses, and after them the IPv6 addresses if they are asked for."""
        ...


@dataclass(frozen=True, slots=True)
class Host:
    """One mail server: the name for TLS and records, and where it is, best address first."""

    name: str
    addresses: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Hosts:
    """The servers to try, in this order; together at most five addresses."""

    hosts: tuple[Host, ...]


@dataclass(frozen=True, slots=True)
class NoHosts:
    """Nowhere to go; classify `reply` at `SmtpStage.ROUTE`. 4xx is for now, 5xx for good."""

    reply: SmtpReply


@dataclass(frozen=True, slots=True)
class HostPolicy:
    """Decides which addresses may be connected to: public ones, plus `allowed` networks, never `own` ones.

    `own` holds our names (lower case) and addresses.
    """

    allowed: Sequence[Network] = ()
    own: Collection[str] = frozenset()
    ipv6: bool = False

    def refusal(self, address: str) -> str | None:
        """Return the enhanced code that says why `address` is not connected to, or nothing."""
        ip = _unmapped(address)
        if str(ip) in self.own:
            return "5.4.6"
        if any(ip.version == net.version and ip in net for net in self.allowed):
            return None
        return None if _is_public(ip) else "5.4.4"


NULL_MX: Final = our_reply(556, "5.1.10", "the domain accepts no mail (null MX)")
NO_DOMAIN: Final = our_reply(550, "5.1.2", "the domain does not exist")
NO_MAIL_HOST: Final = our_reply(550, "5.1.2", "the domain has neither MX nor address records")
NOT_A_DOMAIN: Final = our_reply(550, "5.1.2", "this is not a domain name")
DNS_FAILED: Final = our_reply(451, "4.4.3", "the DNS servers of the domain gave no answer")
MX_UNUSABLE: Final = our_reply(550, "5.4.4", "none of the domain's MX hosts can be used")
NOT_PUBLIC: Final = our_reply(550, "5.4.4", "the domain's mail hosts have no public address")
IT_IS_US: Final = our_reply(550, "5.4.6", "the domain's best mail host is this system itself")


async def hosts_for(
    domain: str, lookup: MxLookup, *, shuffle: Shuffle, policy: HostPolicy
) -> Hosts | NoHosts:
    """Return the mail servers of `domain` (A-labels) in the order to try them, or why there are none."""
    if _NAME.fullmatch(domain) is None:
        return NoHosts(NOT_A_DOMAIN)
    answer = await lookup.mx(domain)
    if answer.status == "failed":
        return NoHosts(DNS_FAILED)
    if answer.status == "no_name":
        return NoHosts(NO_DOMAIN)
    if answer.status == "no_data":
        return await _located([domain], lookup, policy, nothing=NO_MAIL_HOST)
    if all(_plain(exchange) == "" for _, exchange in answer.records):
        return NoHosts(NULL_MX)
    names = _ordered(answer.records, shuffle, policy.own)
    if not names:
        is_us = any(_plain(exchange) in policy.own for _, exchange in answer.records)
        return NoHosts(IT_IS_US if is_us else MX_UNUSABLE)
    return await _located(names, lookup, policy, nothing=MX_UNUSABLE)


def _ordered(records: Sequence[tuple[int, str]], shuffle: Shuffle, own: Collection[str]) -> list[str]:
    """Return the usable names by preference, equals shuffled; from our own place on, none (RFC 5321, 5.1)."""
    usable = [(preference, _plain(exchange)) for preference, exchange in records]
    ours = min((preference for preference, name in usable if name in own), default=None)
    levels: dict[int, list[str]] = {}
    for preference, name in sorted(usable):
        if (ours is None or preference < ours) and _is_host_name(name):
            level = levels.setdefault(preference, [])
            if name not in level:
                level.append(name)
    for level in levels.values():
        shuffle(level)
    return list(dict.fromkeys(name for level in levels.values() for name in level))[:MAX_HOSTS]


async def _located(
    names: Sequence[str], lookup: MxLookup, policy: HostPolicy, *, nothing: SmtpReply
) -> Hosts | NoHosts:
    hosts: list[Host] = []
    remaining = MAX_ADDRESSES
    failed = False
    refusals: set[str] = set()
    for name in names:
        if not remaining:
            break
        answer = await lookup.addresses(name, ipv6=policy.ipv6)
        failed = failed or answer.status == "failed"
        addresses = []
        for address in dict.fromkeys(answer.records):
            refusal = policy.refusal(address)
            if refusal is None:
                addresses.append(address)
            else:
                refusals.add(refusal)
        if addresses:
            hosts.append(Host(name, tuple(addresses[:remaining])))
            remaining -= len(hosts[-1].addresses)
    if hosts:
        return Hosts(tuple(hosts))
    if failed:
        return NoHosts(DNS_FAILED)
    if refusals:
        return NoHosts(IT_IS_US if "5.4.6" in refusals else NOT_PUBLIC)
    return NoHosts(nothing)


def _plain(exchange: str) -> str:
    return exchange.rstrip(".").lower()


def _is_host_name(name: str) -> bool:
    """Return whether it is a name that can be looked up: no empty label, and no address written as a name."""
    if _NAME.fullmatch(name) is None:
        return False
    return re.fullmatch(r"[0-9.]+", name) is None


def _unmapped(address: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    ip = ipaddress.ip_address(address)
    if isinstance(ip, ipaddress.IPv6Address) and ip.ipv4_mapped is not None:
        return ip.ipv4_mapped
    return ip


def _is_public(ip: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    if not ip.is_global or ip.is_multicast or ip.is_reserved or ip.is_unspecified:
        return False
    return ip.version == 4 or (ip in _GLOBAL_V6 and not any(ip in net for net in _TUNNELS))
