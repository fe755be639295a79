"""DNS as a part that is handed in: questions give values, never exceptions.

`DnsResolver` is the real one. Its cache follows the records' TTL inside fixed bounds, keeps failures for a
short time, and never grows past its size. A question that is on its way is not asked again. `current` looks
past the cache, and `in_turn` asks chosen servers: so domains are verified at their own servers. Both wait for
a server as long as a cached look-up does (`ROUNDS`).
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, Literal, Protocol, TypeVar

import dns.exception
import dns.resolver

from pillarbox.kernel.clock import Clock, SystemClock
from pillarbox.kernel.network.dns_answers import AnswerKind, DnsAnswer
from pillarbox.kernel.network.dns_query import SILENT, Server, ServerReply, query_server

T = TypeVar("T")
Status = Literal["found", "no_name", "no_data", "failed"]

MIN_TTL: Final = 60.0
MAX_TTL: Final = 3600.0
FAILURE_TTL: Final = 30.0
ABSENCE_TTL: Final = 300.0
"""That a name does not exist is kept no longer: a second look ten minutes later must be a look (OUT-03)."""

MAX_CNAMES: Final = 16
MAX_VALUES: Final = 100
"""Values of an answer that is shown to people."""

CACHE_SIZE: Final = 10_000
LIFETIME: Final = 10.0
"""Seconds that a cached look-up may take in all."""

ROUNDS: Final = (1.5, 3.0)
"""How many seconds a server may take, in the first round of all servers and in the second."""

PATIENT_ROUNDS: Final = (*ROUNDS, LIFETIME - sum(ROUNDS))
"""The same for cached look-ups: a resolver that has to look far away gets what is left of `LIFETIME`."""

NO_SERVERS: Final = ServerReply(AnswerKind.TROUBLE, detail="this machine has no DNS servers configured")
CIRCLE: Final = "the CNAME records go in a circle"

STATUSES: Final[dict[AnswerKind, Status]] = {
    AnswerKind.VALUES: "found",
    AnswerKind.NO_DATA: "no_data",
    AnswerKind.NO_NAME: "no_name",
    AnswerKind.TROUBLE: "failed",
}


@dataclass(frozen=True, slots=True)
class ResolverAnswer(Generic[T]):
    """The answer to a DNS question. `no_name`: the name does not exist. `no_data`: it exists without such
    records. `failed`: nothing is known about the name (SERVFAIL, REFUSED, no answer in time, a CNAME loop);
    `detail` then has the reason in words. `ttl` is how long the answer may be kept, in seconds.

    `failed`: SERVFAIL, REFUSED, no answer in time, a CNAME loop: nothing is known about the name;
    `detail` then says in words what happened. `ttl` is how long the answer may be kept, in seconds.
    """

    status: Status
    records: tuple[T, ...] = ()
    detail: str = ""
    ttl: float = FAILURE_TTL


Query = Callable[[Server, str, str, float, bool], Awaitable[ServerReply]]
"""Asks a server for a name and type, for so many seconds, and whether it shall ask other servers."""


class ServerHistory(Protocol):
    """Which of several servers are worth a question."""

    def answering(self, servers: Sequence[Server]) -> Sequence[Server]:
        """Return the servers that are not skipped at the moment."""
        ...

    def note(self, server: Server, *, silent: bool) -> None:
        """Remember whether the server answered."""
        ...


class Resolver(Protocol):
    """Names are ASCII (A-labels), with or without the final dot; CNAMEs are followed."""

    async def mx(self, name: str) -> ResolverAnswer[tuple[int, str]]:
        """Return the preference and exchange of each MX (lower case, no final dot, `.` for a null MX), in
        no order."""
        ...

    async def addresses(self, name: str, *, ipv6: bool = False) -> ResolverAnswer[str]:
        """Return the IPv4 addresses, then the IPv6 addresses if asked for; found when either is."""
        ...

    async def txt(self, name: str) -> ResolverAnswer[str]:
        """Return the TXT records, each with its strings joined (RFC 7208, 3.3)."""
        ...

    async def aaaa(self, name: str) -> ResolverAnswer[str]:
        """Return the IPv6 addresses alone, as SPF asks for them."""
        ...

    async def ptr(self, name: str) -> ResolverAnswer[str]:
        """Return the names at an `in-addr.arpa` or `ip6.arpa` name, lower case, no final dot."""
        ...


class DnsResolver:
    """A resolver for one event loop; `servers` are (IP address, port), the system's when left out."""

    def __init__(
        self,
        servers: Sequence[tuple[str, int]] | None = None,
        *,
        clock: Clock | None = None,
        lifetime: float = LIFETIME,
        timeouts: Sequence[float] = PATIENT_ROUNDS,
        cache_size: int = CACHE_SIZE,
        query: Query = query_server,
    ) -> None:
        self._servers = system_servers() if servers is None else [Server(*server) for server in servers]
        self._lifetime = lifetime
        self._timeouts = tuple(timeouts)
        self._query = query
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
        """Return the IPv6 addresses alone, as SPF asks for them."""
        return await self._ask(name, "AAAA")

    async def ptr(self, name: str) -> ResolverAnswer[str]:
        """Return the names at an `in-addr.arpa` or `ip6.arpa` name, lower case, no final dot."""
        return await self._ask(name, "PTR")

    def forget(self) -> None:
        """Empty the cache: an operator changed DNS and does not want to wait."""
        self._cache.clear()

    async def current(self, name: str, kind: str, before: tuple[str, ...] = ()) -> DnsAnswer:
        """Return the answer of the resolvers as it is now; `before` are the names that led to this one."""
        server, reply, through, _ = await self._follow(name, kind, before)
        return dns_answer(server, reply, through)

    async def in_turn(
        self,
        servers: Sequence[Server],
        name: str,
        kind: str,
        *,
        recursion: bool,
        history: ServerHistory | None = None,
    ) -> tuple[Server | None, ServerReply]:
        """Ask the servers in turn until one answers something about the name."""
        last: tuple[Server | None, ServerReply] = (None, NO_SERVERS)
        silent = list(servers)
        for seconds in self._timeouts:
            queried, silent = (history.answering(silent) if history else silent), []
            for server in queried:
                reply = await self._query(server, name, kind, seconds, recursion)
                if history is not None:
                    history.note(server, silent=reply.silent)
                if reply.kind is not AnswerKind.TROUBLE or reply.referral is not None:
                    return server, reply
                if not reply.silent or last[1].silent or last[0] is None:
                    last = (server, reply)
                if reply.silent:
                    silent.append(server)
        return last

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
            async with asyncio.timeout(self._lifetime):
                _, reply, _, ttl = await self._follow(name, kind)
        except TimeoutError:
            reply, ttl = SILENT, FAILURE_TTL
        status = STATUSES[reply.kind]
        if status == "failed":
            return ResolverAnswer(status, detail=reply.summary)
        if status == "no_name":
            ttl = min(ttl, ABSENCE_TTL)
        records = tuple(_record(value, kind) for value in reply.values)
        return ResolverAnswer(status, records, reply.detail, _bounded(ttl))

    async def _follow(
        self, name: str, kind: str, before: tuple[str, ...] = ()
    ) -> tuple[Server | None, ServerReply, tuple[str, ...], float]:
        """Return who answered, the answer, the names that CNAMEs led to before it, and the TTL of all.

        The resolvers follow CNAMEs, but some stop at the border of a zone: then the next part is asked.
        """
        through, ttl = before, MAX_TTL
        server, reply = await self.in_turn(self._servers, name, kind, recursion=True)
        while reply.rest is not None:
            is_circle = not set(reply.through).isdisjoint((*through, name))
            through, ttl = through + reply.through, min(ttl, reply.ttl)
            if is_circle or len(through) > MAX_CNAMES:
                return server, ServerReply(AnswerKind.TROUBLE, summary=CIRCLE), through, ttl
            server, reply = await self.in_turn(self._servers, reply.rest, kind, recursion=True)
        return server, reply, through, min(ttl, reply.ttl)


def system_servers() -> tuple[Server, ...]:
    """Return the resolvers that this machine is configured with."""
    try:
        found = dns.resolver.Resolver(configure=True).nameservers
    except dns.exception.DNSException:
        return ()
    return tuple(Server(address) for address in found if isinstance(address, str))


def dns_answer(server: Server | None, reply: ServerReply, through: tuple[str, ...]) -> DnsAnswer:
    """Return a reply as the answer to the question that led to it."""
    name = "" if server is None else str(server)
    if reply.summary == CIRCLE:
        return DnsAnswer(kind=reply.kind, values=(), server=name, detail=CIRCLE, through=through)
    detail = f"{name} {reply.detail}" if name and reply.detail else reply.detail
    return DnsAnswer(
        kind=reply.kind,
        values=reply.values[:MAX_VALUES],
        server=name,
        detail=detail,
        through=through + reply.through,
    )


def _both(first: ResolverAnswer[str], second: ResolverAnswer[str]) -> ResolverAnswer[str]:
    """Return the answers to A and AAAA as one: found if either is, failed if that leaves the
    question open."""
    ttl = min(first.ttl, second.ttl)
    for status in ("found", "failed", "no_data"):
        for answer in (first, second):
            if answer.status == status:
                return ResolverAnswer(status, first.records + second.records, answer.detail, ttl)
    return ResolverAnswer("no_name", ttl=ttl)


def _record(value: str, kind: str) -> tuple[int, str] | str:
    """Return a value as `Resolver` has it."""
    if kind != "MX":
        return value
    preference, _, exchange = value.partition(" ")
    return int(preference), exchange


def _bounded(ttl: float) -> float:
    return max(MIN_TTL, min(MAX_TTL, ttl))
