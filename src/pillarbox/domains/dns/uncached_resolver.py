"""Asking DNS about domains, past every cache of ours.

With servers named by the operator only those are asked, in turn. Otherwise two parties are: the servers
that are responsible for the domain (they know of a change at once), and the system's resolvers (they see
what the rest of the world sees, and answer where port 53 is closed). Each gives a sighting of its own.

No domain delays another: so many questions may be on their way at once, but one that has no answer after a
moment gives its place away and goes on waiting among the slow ones. Their number is bounded too; where it is
reached, a slow question ends as one that nobody answered.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import dns.exception
import dns.resolver

from pillarbox.domains.dns.answers import AnswerKind, DnsAnswer, DnsAnswers, Question
from pillarbox.domains.dns.authoritative_servers import MOST_SERVERS, AuthoritativeServers
from pillarbox.domains.dns.server_query import DNS_PORT, Server, ServerReply, query_server
from pillarbox.kernel.clock import Clock
from pillarbox.kernel.network.address_policy import Network
from pillarbox.kernel.network.dns import MAX_CNAMES

ROUNDS: Final = (1.5, 3.0)
"""How many seconds a server may take, in the first round of all servers and in the second."""

IN_FLIGHT: Final = 100
QUICK: Final = 0.5
"""After so many seconds a question is slow and makes room for another."""

MOST_SLOW: Final = 400
MOST_REFERRALS: Final = 4

NO_SERVERS: Final = ServerReply(AnswerKind.TROUBLE, detail="this machine has no DNS servers configured")
LEFT_ALONE: Final = ServerReply(AnswerKind.TROUBLE, detail="none of the domain's own DNS servers answers")


class UncachedResolver:
    """Asks real servers. `servers` are (IP address, port); without them the system's resolvers (or
    `resolvers`) and the domains' own servers, on `port`, are asked."""

    def __init__(
        self,
        servers: Sequence[tuple[str, int]] | None,
        clock: Clock,
        *,
        allowed: Sequence[Network] = (),
        resolvers: Sequence[Server] | None = None,
        port: int = DNS_PORT,
        rounds: Sequence[float] = ROUNDS,
        in_flight: int = IN_FLIGHT,
        most_slow: int = MOST_SLOW,
        quick: float = QUICK,
    ) -> None:
        self._rounds = tuple(rounds)
        self._quick = quick
        self._places = asyncio.Semaphore(in_flight)
        self._most_slow = most_slow
        self._slow = 0
        self._own: AuthoritativeServers | None = None
        if servers is not None:
            self._resolvers = tuple(Server(address, port) for address, port in servers)
        else:
            self._resolvers = tuple(system_servers() if resolvers is None else resolvers)
            self._own = AuthoritativeServers(self._resolved, clock, allowed, port)

    async def ask(self, question: Question) -> DnsAnswers:
        """What each party says that can be asked."""
        if question.kind == "ADDRESSES":
            return _both(*await asyncio.gather(*(self._ask(question.name, kind) for kind in ("A", "AAAA"))))
        return await self._ask(question.name, question.kind)

    async def _ask(self, name: str, kind: str) -> DnsAnswers:
        if self._own is None:
            return (await self._resolved(name, kind),)
        own, others = await asyncio.gather(
            self._responsible(self._own, name, kind), self._resolved(name, kind)
        )
        return (others,) if own is None else (own, others)

    async def _resolved(self, name: str, kind: str, before: tuple[str, ...] = ()) -> DnsAnswer:
        """What the resolvers say. They follow CNAMEs, but some stop at the border of a zone: then the next
        part is asked. `before` are names that led here."""
        through = before
        server, heard = await self._turn(self._resolvers, name, kind, recursion=True)
        while heard.rest is not None:
            circle = not set(heard.through).isdisjoint((*through, name))
            through += heard.through
            if circle or len(through) > MAX_CNAMES:
                return DnsAnswer(
                    AnswerKind.TROUBLE, (), str(server or ""), "the CNAME records go in a circle", through
                )
            server, heard = await self._turn(self._resolvers, heard.rest, kind, recursion=True)
        return _sighting(server, heard, through)

    async def _responsible(self, own: AuthoritativeServers, name: str, kind: str) -> DnsAnswer | None:
        """What the domain's own servers say; None where none is known."""
        servers = await own.of(name)
        for _ in range(MOST_REFERRALS):
            if not servers:
                return None
            server, heard = await self._turn(servers, name, kind, recursion=False, own=own)
            if heard.rest is not None:
                return await self._resolved(heard.rest, kind, heard.through)
            if heard.referral is None:
                return _sighting(server, heard, ())
            servers = await own.named(heard.referral.servers)
        return None

    async def _turn(
        self,
        servers: Sequence[Server],
        name: str,
        kind: str,
        *,
        recursion: bool,
        own: AuthoritativeServers | None = None,
    ) -> tuple[Server | None, ServerReply]:
        """Ask the servers in turn until one says something about the name."""
        if not servers:
            return None, NO_SERVERS
        last: tuple[Server | None, ServerReply] = (servers[0], LEFT_ALONE)
        silent = list(servers[:MOST_SERVERS])
        for seconds in self._rounds:
            asked, silent = (own.answering(silent) if own else silent), []
            for server in asked:
                heard = await self._flown(server, name, kind, seconds, recursion)
                if own is not None:
                    own.note(server, silent=heard.silent)
                if heard.said is not AnswerKind.TROUBLE or heard.referral is not None:
                    return server, heard
                last = (server, heard)
                if heard.silent:
                    silent.append(server)
        return last

    async def _flown(
        self, server: Server, name: str, kind: str, seconds: float, recursion: bool
    ) -> ServerReply:
        """One exchange, within the bounds of how many may be on their way."""
        await self._places.acquire()
        flight = asyncio.create_task(query_server(server, name, kind, seconds, recursion=recursion))
        try:
            await asyncio.wait((flight,), timeout=self._quick)
        except asyncio.CancelledError:
            flight.cancel()
            raise
        finally:
            self._places.release()
        if flight.done():
            return flight.result()
        if self._slow >= self._most_slow:
            flight.cancel()
            return ServerReply(AnswerKind.TROUBLE, detail="does not answer in time", silent=True)
        self._slow += 1
        try:
            return await flight
        finally:
            self._slow -= 1


def system_servers() -> tuple[Server, ...]:
    """The resolvers that this machine is configured with."""
    try:
        found = dns.resolver.Resolver(configure=True).nameservers
    except dns.exception.DNSException:
        return ()
    return tuple(Server(address) for address in found if isinstance(address, str))


def _sighting(server: Server | None, heard: ServerReply, through: tuple[str, ...]) -> DnsAnswer:
    who = "" if server is None else str(server)
    detail = f"{who} {heard.detail}" if who and heard.detail else heard.detail
    return DnsAnswer(heard.said, heard.values, who, detail, through + heard.through)


def _both(first: DnsAnswers, second: DnsAnswers) -> DnsAnswers:
    """A and AAAA as one answer for each party; trouble with either leaves the set unknown."""
    joined = []
    for a, aaaa in zip(first, second, strict=False):
        pair = (a, aaaa)
        for said in (AnswerKind.TROUBLE, AnswerKind.VALUES, AnswerKind.NO_DATA, AnswerKind.NO_NAME):
            if told := next((found for found in pair if found.said is said), None):
                joined.append(replace(told, values=tuple(value for found in pair for value in found.values)))
                break
    return tuple(joined)
