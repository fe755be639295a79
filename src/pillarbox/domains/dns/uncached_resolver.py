"""Asking DNS about domains, past every cache of ours.

With servers named by the operator only those are asked, in turn. Otherwise two parties are: the servers that
are responsible for the domain, which know of a change at once; and the system's resolvers, which see what the
rest of the world sees and answer where port 53 is closed. Each gives an answer of its own.

No domain delays another: so many questions may be on their way at once. One that has no answer after a moment
gives its place away, and waits on among the slow ones. Their number is bounded too; where it is reached, a
slow question ends as one that nobody answered.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import dns.exception
import dns.resolver

from pillarbox.domains.dns.answers import AnswerKind, DnsAnswer, DnsAnswers, DnsQuestion
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
        timeouts: Sequence[float] = ROUNDS,
        in_flight: int = IN_FLIGHT,
        most_slow: int = MOST_SLOW,
        quick_seconds: float = QUICK,
    ) -> None:
        self._timeouts = tuple(timeouts)
        self._quick_seconds = quick_seconds
        self._slots = asyncio.Semaphore(in_flight)
        self._most_slow = most_slow
        self._slow = 0
        self._authoritative: AuthoritativeServers | None = None
        if servers is not None:
            self._resolvers = tuple(Server(address, port) for address, port in servers)
        else:
            self._resolvers = tuple(system_servers() if resolvers is None else resolvers)
            self._authoritative = AuthoritativeServers(self._resolver_answer, clock, allowed, port)

    async def ask(self, question: DnsQuestion) -> DnsAnswers:
        """The answers of all servers that can be asked: the authoritative ones first, then the resolvers."""
        if question.kind == "ADDRESSES":
            return _both(*await asyncio.gather(*(self._ask(question.name, kind) for kind in ("A", "AAAA"))))
        return await self._ask(question.name, question.kind)

    async def _ask(self, name: str, kind: str) -> DnsAnswers:
        if self._authoritative is None:
            return (await self._resolver_answer(name, kind),)
        own, others = await asyncio.gather(
            self._authoritative_answer(self._authoritative, name, kind), self._resolver_answer(name, kind)
        )
        return (others,) if own is None else (own, others)

    async def _resolver_answer(self, name: str, kind: str, before: tuple[str, ...] = ()) -> DnsAnswer:
        """The answer of the resolvers. They follow CNAMEs, but some stop at the border of a zone: then the
        next part is asked. `before` are the names that led here."""
        through = before
        server, reply = await self._query_in_turn(self._resolvers, name, kind, recursion=True)
        while reply.rest is not None:
            circle = not set(reply.through).isdisjoint((*through, name))
            through += reply.through
            if circle or len(through) > MAX_CNAMES:
                return DnsAnswer(
                    AnswerKind.TROUBLE, (), str(server or ""), "the CNAME records go in a circle", through
                )
            server, reply = await self._query_in_turn(self._resolvers, reply.rest, kind, recursion=True)
        return _dns_answer(server, reply, through)

    async def _authoritative_answer(
        self, own: AuthoritativeServers, name: str, kind: str
    ) -> DnsAnswer | None:
        """The answer of the domain's authoritative servers; None where none is known."""
        servers = await own.of(name)
        for _ in range(MOST_REFERRALS):
            if not servers:
                return None
            server, reply = await self._query_in_turn(servers, name, kind, recursion=False, own=own)
            if reply.rest is not None:
                return await self._resolver_answer(reply.rest, kind, reply.through)
            if reply.referral is None:
                return _dns_answer(server, reply, ())
            servers = await own.named(reply.referral.servers)
        return None

    async def _query_in_turn(
        self,
        servers: Sequence[Server],
        name: str,
        kind: str,
        *,
        recursion: bool,
        own: AuthoritativeServers | None = None,
    ) -> tuple[Server | None, ServerReply]:
        """Ask the servers in turn until one answers something about the name."""
        if not servers:
            return None, NO_SERVERS
        last: tuple[Server | None, ServerReply] = (servers[0], LEFT_ALONE)
        silent = list(servers[:MOST_SERVERS])
        for seconds in self._timeouts:
            queried, silent = (own.answering(silent) if own else silent), []
            for server in queried:
                reply = await self._query_bounded(server, name, kind, seconds, recursion)
                if own is not None:
                    own.note(server, silent=reply.silent)
                if reply.kind is not AnswerKind.TROUBLE or reply.referral is not None:
                    return server, reply
                last = (server, reply)
                if reply.silent:
                    silent.append(server)
        return last

    async def _query_bounded(
        self, server: Server, name: str, kind: str, seconds: float, recursion: bool
    ) -> ServerReply:
        """One query, within the limit of how many may be in flight."""
        await self._slots.acquire()
        query = asyncio.create_task(query_server(server, name, kind, seconds, recursion=recursion))
        try:
            await asyncio.wait((query,), timeout=self._quick_seconds)
        except asyncio.CancelledError:
            query.cancel()
            raise
        finally:
            self._slots.release()
        if query.done():
            return query.result()
        if self._slow >= self._most_slow:
            query.cancel()
            return ServerReply(AnswerKind.TROUBLE, detail="does not answer in time", silent=True)
        self._slow += 1
        try:
            return await query
        finally:
            self._slow -= 1


def system_servers() -> tuple[Server, ...]:
    """The resolvers that this machine is configured with."""
    try:
        found = dns.resolver.Resolver(configure=True).nameservers
    except dns.exception.DNSException:
        return ()
    return tuple(Server(address) for address in found if isinstance(address, str))


def _dns_answer(server: Server | None, reply: ServerReply, through: tuple[str, ...]) -> DnsAnswer:
    who = "" if server is None else str(server)
    detail = f"{who} {reply.detail}" if who and reply.detail else reply.detail
    return DnsAnswer(reply.kind, reply.values, who, detail, through + reply.through)


def _both(first: DnsAnswers, second: DnsAnswers) -> DnsAnswers:
    """A and AAAA as one answer for each kind of server; trouble with either leaves the set unknown."""
    joined = []
    for a, aaaa in zip(first, second, strict=False):
        pair = (a, aaaa)
        for kind in (AnswerKind.TROUBLE, AnswerKind.VALUES, AnswerKind.NO_DATA, AnswerKind.NO_NAME):
            if one := next((found for found in pair if found.kind is kind), None):
                joined.append(replace(one, values=tuple(value for found in pair for value in found.values)))
                break
    return tuple(joined)
