"""DNS as a part that is handed in: questions give values, never exceptions.

`DnsResolver` is the real one: dnspython on asyncio, with a cache of our own. The cache follows the records'
TTL inside fixed bounds, keeps failures for a short time, and never grows past its size. A question that is on
its way is not asked again.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, Literal, Protocol, TypeVar

import dns.asyncresolver
import dns.exception
import dns.message
import dns.name
import dns.nameserver
import dns.rcode
import dns.rdatatype
import dns.resolver

from pillarbox.kernel.clock import Clock, SystemClock

T = TypeVar("T")
Status = Literal["found", "no_name", "no_data", "failed"]

MIN_TTL: Final = 60.0
MAX_TTL: Final = 3600.0
FAILURE_TTL: Final = 30.0
ABSENCE_TTL: Final = 300.0
"""That a name does not exist is kept no longer: a second look ten minutes later must be a look (OUT-03)."""

MAX_CNAMES: Final = 16
CACHE_SIZE: Final = 10_000
LIFETIME: Final = 10.0


@dataclass(frozen=True, slots=True)
class ResolverAnswer(Generic[T]):
    """What DNS says. `no_name`: the name does not exist. `no_data`: it exists without such records.

    `failed`: SERVFAIL, REFUSED, no answer in time, a CNAME loop: nothing is known about the name;
    `detail` then says in words what happened. `ttl` is how long the answer may be kept, in seconds.
    """

    status: Status
    records: tuple[T, ...] = ()
    detail: str = ""
    ttl: float = FAILURE_TTL


class Resolver(Protocol):
    """Names are ASCII (A-labels), with or without the final dot; CNAMEs are followed."""

    async def mx(self, name: str) -> ResolverAnswer[tuple[int, str]]:
        """Preference and exchange (lower case, no final dot, `.` for a null MX), in no order."""
        ...

    async def addresses(self, name: str, *, ipv6: bool = False) -> ResolverAnswer[str]:
        """The IPv4 addresses, then the IPv6 addresses if asked for; found when either is."""
        ...

    async def txt(self, name: str) -> ResolverAnswer[str]:
        """The TXT records, each with its strings joined (RFC 7208, 3.3)."""
        ...

    async def aaaa(self, name: str) -> ResolverAnswer[str]:
        """The IPv6 addresses alone, as SPF asks for them."""
        ...

    async def ptr(self, name: str) -> ResolverAnswer[str]:
        """The names at an `in-addr.arpa` or `ip6.arpa` name, lower case, no final dot."""
        ...


class DnsResolver:
    """A resolver for one event loop; `servers` are (IP address, port), the system's when left out."""

    def __init__(
        self,
        servers: Sequence[tuple[str, int]] | None = None,
        *,
        clock: Clock | None = None,
        lifetime: float = LIFETIME,
        cache_size: int = CACHE_SIZE,
    ) -> None:
        self._resolver = dns.asyncresolver.Resolver(configure=servers is None)
        if servers is not None:
            self._resolver.nameservers = [dns.nameserver.Do53Nameserver(host, port) for host, port in servers]
        self._resolver.lifetime = lifetime
        self._resolver.timeout = lifetime / 3
        self._clock = clock or SystemClock()
        self._cache_size = cache_size
        self._cache: OrderedDict[tuple[str, str], tuple[float, ResolverAnswer[Any]]] = OrderedDict()
        self._flying: dict[tuple[str, str], asyncio.Task[ResolverAnswer[Any]]] = {}

    async def mx(self, name: str) -> ResolverAnswer[tuple[int, str]]:
        return await self._ask(name, "MX")

    async def addresses(self, name: str, *, ipv6: bool = False) -> ResolverAnswer[str]:
        if not ipv6:
            return await self._ask(name, "A")
        return _both(*await asyncio.gather(self._ask(name, "A"), self._ask(name, "AAAA")))

    async def txt(self, name: str) -> ResolverAnswer[str]:
        return await self._ask(name, "TXT")

    async def aaaa(self, name: str) -> ResolverAnswer[str]:
        """The IPv6 addresses alone, as SPF asks for them."""
        return await self._ask(name, "AAAA")

    async def ptr(self, name: str) -> ResolverAnswer[str]:
        """The names at an `in-addr.arpa` or `ip6.arpa` name, lower case, no final dot."""
        return await self._ask(name, "PTR")

    def forget(self) -> None:
        """Empty the cache: an operator changed DNS and does not want to wait."""
        self._cache.clear()

    async def _ask(self, name: str, kind: str) -> ResolverAnswer[Any]:
        key = (name.rstrip(".").lower(), kind)
        kept = self._cache.get(key)
        if kept is not None and self._clock.boottime() < kept[0]:
            self._cache.move_to_end(key)
            return kept[1]
        task = self._flying.get(key)
        if task is None:
            task = asyncio.create_task(self._fetch(key))
            self._flying[key] = task
            task.add_done_callback(lambda _: self._flying.pop(key, None))
        # Shielded: one caller that gives up must not take the answer from the others.
        return await asyncio.shield(task)

    async def _fetch(self, key: tuple[str, str]) -> ResolverAnswer[Any]:
        answer = await self._resolve(*key)
        self._cache[key] = (self._clock.boottime() + answer.ttl, answer)
        self._cache.move_to_end(key)
        while len(self._cache) > self._cache_size:
            self._cache.popitem(last=False)
        return answer

    async def _resolve(self, name: str, kind: str) -> ResolverAnswer[Any]:
        try:
            target = dns.name.from_text(name, origin=dns.name.root)
        except (dns.exception.DNSException, UnicodeError):
            return ResolverAnswer("no_name", detail="this is not a domain name", ttl=MIN_TTL)
        ttl = MAX_TTL
        seen = {target}
        try:
            # The servers follow CNAMEs, but some stop at the border of a zone: then the next part is asked.
            while len(seen) <= MAX_CNAMES:
                found = await self._resolver.resolve(target, kind, raise_on_no_answer=False, search=False)
                ttl = min(ttl, found.chaining_result.minimum_ttl)
                if found.rrset is not None:
                    records = tuple(_value(record, kind) for record in found.rrset)
                    return ResolverAnswer("found", records, ttl=_bounded(ttl))
                target = found.canonical_name
                hops = {cname.name for cname in found.chaining_result.cnames}
                if not hops:
                    return ResolverAnswer("no_data", ttl=_bounded(ttl))
                if target in seen or hops & (seen - {found.qname}):
                    return ResolverAnswer("failed", detail="the CNAME records go in a circle")
                seen |= hops | {target}
        except dns.resolver.NXDOMAIN as missing:
            return ResolverAnswer("no_name", ttl=_bounded(min(ttl, ABSENCE_TTL, _negative_ttl(missing))))
        except (dns.exception.DNSException, OSError) as error:
            return ResolverAnswer("failed", detail=_words(error))
        return ResolverAnswer("failed", detail="the CNAME records form too long a chain")


def _both(first: ResolverAnswer[str], second: ResolverAnswer[str]) -> ResolverAnswer[str]:
    """A and AAAA as one answer: found if either is, failed if that leaves the question open."""
    ttl = min(first.ttl, second.ttl)
    for status in ("found", "failed", "no_data"):
        for answer in (first, second):
            if answer.status == status:
                return ResolverAnswer(status, first.records + second.records, answer.detail, ttl)
    return ResolverAnswer("no_name", ttl=ttl)


def _value(record: Any, kind: str) -> tuple[int, str] | str:
    if kind == "MX":
        return record.preference, record.exchange.to_text(omit_final_dot=True).lower()
    if kind == "TXT":
        return b"".join(record.strings).decode("utf-8", "replace")
    if kind == "PTR":
        return str(record.target.to_text(omit_final_dot=True)).lower()
    return str(record.address)


def _bounded(ttl: float) -> float:
    return max(MIN_TTL, min(MAX_TTL, ttl))


def _negative_ttl(missing: dns.resolver.NXDOMAIN) -> float:
    """How long "no such name" may be kept: the zone's SOA says it (RFC 2308, 5)."""
    for response in missing.kwargs.get("responses", {}).values():
        for rrset in response.authority:
            if rrset.rdtype == dns.rdatatype.SOA:
                return float(min(rrset.ttl, rrset[0].minimum))
    return MIN_TTL


def _words(error: Exception) -> str:
    if isinstance(error, dns.resolver.LifetimeTimeout):
        return "no DNS server answered in time"
    if isinstance(error, dns.resolver.NoNameservers):
        codes = {dns.rcode.to_text(e[4].rcode()) for e in error.kwargs.get("errors", []) if e[4] is not None}
        return f"the DNS servers answered {', '.join(sorted(codes))}" if codes else "the DNS servers failed"
    if isinstance(error, dns.message.ChainTooLong):
        return "the CNAME records form too long a chain"
    return f"the look-up failed: {type(error).__name__}"
