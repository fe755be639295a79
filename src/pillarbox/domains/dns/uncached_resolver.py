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

from pillarbox.domains.dns.authoritative_servers import MOST_SERVERS, AuthoritativeServers
from pillarbox.kernel.clock import Clock
from pillarbox.kernel.network.address_policy import Network
from pillarbox.kernel.network.dns import ROUNDS, DnsResolver, dns_answer
from pillarbox.kernel.network.dns_answers import AnswerKind, DnsAnswer, DnsAnswers, DnsQuestion
from pillarbox.kernel.network.dns_query import DNS_PORT, SILENT, Server, ServerReply, query_server

IN_FLIGHT: Final = 100
QUICK: Final = 0.5
"""After so many seconds a question is slow and makes room for another."""

MOST_SLOW: Final = 400
MOST_REFERRALS: Final = 4

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
        resolvers: Sequence[tuple[str, int]] | None = None,
        port: int = DNS_PORT,
        timeouts: Sequence[float] = ROUNDS,
        in_flight: int = IN_FLIGHT,
        most_slow: int = MOST_SLOW,
        quick_seconds: float = QUICK,
    ) -> None:
        self._quick_seconds = quick_seconds
        self._slots = asyncio.Semaphore(in_flight)
        self._most_slow = most_slow
        self._slow = 0
        asked = resolvers if servers is None else servers
        asked = None if asked is None else asked[:MOST_SERVERS]
        self._dns = DnsResolver(asked, clock=clock, timeouts=timeouts, query=self._query_bounded)
        self._authoritative: AuthoritativeServers | None = None
        if servers is None:
            self._authoritative = AuthoritativeServers(self._dns.current, clock, allowed, port)

    async def ask(self, question: DnsQuestion) -> DnsAnswers:
        """Return the answers of all servers that can be asked: the authoritative ones first, then
        the resolvers."""
        if question.kind == "ADDRESSES":
            return _both(*await asyncio.gather(*(self._ask(question.name, kind) for kind in ("A", "AAAA"))))
        return await self._ask(question.name, question.kind)

    async def _ask(self, name: str, kind: str) -> DnsAnswers:
        if self._authoritative is None:
            return (await self._dns.current(name, kind),)
        own, others = await asyncio.gather(
            self._authoritative_answer(self._authoritative, name, kind), self._dns.current(name, kind)
        )
        return (others,) if own is None else (own, others)

    async def _authoritative_answer(
        self, own: AuthoritativeServers, name: str, kind: str
    ) -> DnsAnswer | None:
        """Return the answer of the domain's authoritative servers; None where none is known."""
        servers = await own.of(name)
        for _ in range(MOST_REFERRALS):
            if not servers:
                return None
            server, reply = await self._dns.in_turn(servers, name, kind, recursion=False, history=own)
            if server is None:
                server, reply = servers[0], LEFT_ALONE
            if reply.rest is not None:
                return await self._dns.current(reply.rest, kind, reply.through)
            if reply.referral is None:
                return dns_answer(server, reply, ())
            servers = await own.named(reply.referral.servers)
        return None

    async def _query_bounded(
        self, server: Server, name: str, kind: str, seconds: float, recursion: bool
    ) -> ServerReply:
        """Send one query, within the limit of how many may be in flight."""
        await self._slots.acquire()
        query = asyncio.create_task(query_server(server, name, kind, seconds, recursion))
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
            return SILENT
        self._slow += 1
        try:
            return await query
        finally:
            self._slow -= 1


def _both(first: DnsAnswers, second: DnsAnswers) -> DnsAnswers:
    """Return the answers to A and AAAA as one for each kind of server; trouble with either leaves the
    set unknown."""
    joined = []
    for a, aaaa in zip(first, second, strict=False):
        pair = (a, aaaa)
        for kind in (AnswerKind.TROUBLE, AnswerKind.VALUES, AnswerKind.NO_DATA, AnswerKind.NO_NAME):
            if one := next((found for found in pair if found.kind is kind), None):
                joined.append(replace(one, values=tuple(value for found in pair for value in found.values)))
                break
    return tuple(joined)
