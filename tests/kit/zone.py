"""A fake DNS zone for tests: in memory as a resolver, or served over UDP and TCP on loopback.

    zone = Zone('''
        example.test      MX    10 mx1.example.test
        example.test      MX    20 mx2.example.test
        mx1.example.test  A     192.0.2.1
        null.test         MX    0 .
        www.example.test  CNAME example.test
        example.test      TXT   "v=spf1 -all"
    ''')
    zone.fail("broken.test")                      # SERVFAIL; also REFUSED, SILENCE

`Zone` itself answers `mx`, `addresses`, `aaaa`, `ptr` and `txt` as the kernel's resolver does, with CNAMEs.
`async with serve_zone(zone) as server:` gives the (host, port) of a real DNS server for it, which
follows CNAMEs inside the zone as a recursive resolver would. Every question is counted in
`zone.questions`. A name without records that is above another name exists (no data); else NXDOMAIN.
"""

from __future__ import annotations

import asyncio
import contextlib
import struct
from collections.abc import AsyncIterator
from typing import Any

import dns.flags
import dns.message
import dns.name
import dns.rcode
import dns.rdata
import dns.rdataclass
import dns.rdatatype
import dns.rrset

from pillarbox.kernel.network.dns import MAX_CNAMES, ResolverAnswer, Status
from pillarbox.kernel.network.dns_answers import AnswerKind, DnsAnswer, DnsAnswers, DnsQuestion

TTL = 300


class Zone:
    """Records by name and type; names are lower case without the final dot."""

    def __init__(self, text: str = "", *, ttl: int = TTL) -> None:
        self.ttl = ttl
        self.questions: list[tuple[str, str]] = []
        self.changed = asyncio.Event()
        self.hold: asyncio.Event | None = None
        """While this is set to an event, answers wait for it."""
        self.follows_cnames = True
        """Whether the server follows CNAMEs; false leaves that to the one who asks."""
        self.truncates = False
        """Whether every UDP answer is cut, so that TCP has to be used."""
        self._records: dict[tuple[str, str], list[str]] = {}
        self._faults: dict[str, str] = {}
        for line in text.splitlines():
            if line.strip():
                name, kind, value = line.split(None, 2)
                self.add(name, kind, value.strip())

    def add(self, name: str, kind: str, *values: str) -> None:
        """Put records in; a TXT value may be quoted."""
        self._records.setdefault((_plain(name), kind), []).extend(values)

    def remove(self, name: str, kind: str) -> None:
        """Take the records of that name and type out."""
        self._records.pop((_plain(name), kind), None)

    def fail(self, name: str, how: str = "SERVFAIL") -> None:
        """Make every question for that name fail: SERVFAIL, REFUSED or SILENCE; "" heals it."""
        self._faults[_plain(name)] = how

    # As a resolver.

    async def mx(self, name: str) -> ResolverAnswer[tuple[int, str]]:
        answer = await self._ask(name, "MX")
        records = tuple(_mx_value(value) for value in answer.records)
        return ResolverAnswer(answer.status, records, answer.detail, answer.ttl)

    async def addresses(self, name: str, *, ipv6: bool = False) -> ResolverAnswer[str]:
        first = await self._ask(name, "A")
        if not ipv6:
            return first
        second = await self._ask(name, "AAAA")
        for status in ("found", "failed", "no_data"):
            if status in (first.status, second.status):
                return ResolverAnswer(status, first.records + second.records, "", self.ttl)
        return first

    async def txt(self, name: str) -> ResolverAnswer[str]:
        answer = await self._ask(name, "TXT")
        return ResolverAnswer(
            answer.status, tuple(value.strip('"') for value in answer.records), answer.detail, answer.ttl
        )

    async def aaaa(self, name: str) -> ResolverAnswer[str]:
        return await self._ask(name, "AAAA")

    async def ptr(self, name: str) -> ResolverAnswer[str]:
        answer = await self._ask(name, "PTR")
        return ResolverAnswer(answer.status, tuple(map(_plain, answer.records)), answer.detail, answer.ttl)

    async def ask(self, question: DnsQuestion) -> DnsAnswers:
        """Answer as `domains.dns.uncached_resolver` does; there is one server, the zone."""
        if question.kind == "ADDRESSES":
            answer = await self.addresses(question.name, ipv6=True)
        elif question.kind == "CNAME":
            await self.note(question.name, "CNAME")
            found = tuple(_plain(name) for name in self.records(question.name, "CNAME"))
            fault = self.fault(question.name)
            status: Status = "failed" if fault else "found" if found else self.absence(question.name)
            answer = ResolverAnswer(status, found, fault)
        else:
            answer = await self._ask(question.name, question.kind)
        values = tuple(_seen(question.kind, value) for value in answer.records)
        return (DnsAnswer(SAID[answer.status], values, "the zone", answer.detail),)

    async def _ask(self, name: str, kind: str) -> ResolverAnswer[str]:
        await self.note(name, kind)
        target = _plain(name)
        for _ in range(MAX_CNAMES + 1):
            if self.fault(target):
                return ResolverAnswer("failed", detail=self.fault(target))
            if records := self.records(target, kind):
                return ResolverAnswer("found", tuple(records), ttl=self.ttl)
            if not (cname := self.records(target, "CNAME")):
                return ResolverAnswer(self.absence(target), ttl=self.ttl)
            target = _plain(cname[0])
        return ResolverAnswer("failed", detail="the CNAME records go in a circle")

    # What both sides need.

    async def note(self, name: str, kind: str) -> None:
        self.questions.append((_plain(name), kind))
        self.changed.set()
        if self.hold is not None:
            await self.hold.wait()

    def records(self, name: str, kind: str) -> list[str]:
        return self._records.get((_plain(name), kind), [])

    def fault(self, name: str) -> str:
        return self._faults.get(_plain(name), "")

    def absence(self, name: str) -> Status:
        suffix = f".{_plain(name)}"
        known = (known for known, _ in self._records)
        return "no_data" if any(k == _plain(name) or k.endswith(suffix) for k in known) else "no_name"


def _plain(name: str) -> str:
    return name.rstrip(".").lower()


SAID = {
    "found": AnswerKind.VALUES,
    "no_data": AnswerKind.NO_DATA,
    "no_name": AnswerKind.NO_NAME,
    "failed": AnswerKind.TROUBLE,
}


def _seen(kind: str, value: str) -> str:
    if kind == "MX":
        preference, exchange = _mx_value(value)
        return f"{preference} {exchange}"
    return value.strip('"')


def _mx_value(value: str) -> tuple[int, str]:
    preference, exchange = value.split()
    return int(preference), _plain(exchange) or "."


@contextlib.asynccontextmanager
async def serve_zone(zone: Zone) -> AsyncIterator[tuple[str, int]]:
    """Yield a DNS server for the zone on one free loopback port, UDP and TCP."""
    server = _Server(zone)
    tcp = await asyncio.start_server(server.serve_tcp, "127.0.0.1", 0)
    host, port = tcp.sockets[0].getsockname()[:2]
    loop = asyncio.get_running_loop()
    udp, _ = await loop.create_datagram_endpoint(lambda: _Udp(server), local_addr=(host, port))
    try:
        yield host, port
    finally:
        udp.close()
        tcp.close()
        await server.stop()


class _Server:
    def __init__(self, zone: Zone) -> None:
        self._zone = zone
        self.tasks: set[asyncio.Task[Any]] = set()

    async def stop(self) -> None:
        for task in list(self.tasks):
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)

    async def answer(self, packet: bytes) -> dns.message.Message | None:
        query = dns.message.from_wire(packet)
        question = query.question[0]
        name, kind = question.name.to_text(), dns.rdatatype.to_text(question.rdtype)
        await self._zone.note(name, kind)
        if self._zone.fault(name) == "SILENCE":
            return None
        response = dns.message.make_response(query)
        response.flags |= dns.flags.RA
        self._fill(response, _plain(name), kind)
        return response

    def _fill(self, response: dns.message.Message, name: str, kind: str) -> None:
        for _ in range(MAX_CNAMES + 2):
            if self._zone.fault(name):
                response.set_rcode(dns.rcode.from_text(self._zone.fault(name)))
                return
            if records := self._zone.records(name, kind):
                response.answer.append(self._rrset(name, kind, records))
                return
            if not (cname := self._zone.records(name, "CNAME")):
                if self._zone.absence(name) == "no_name":
                    response.set_rcode(dns.rcode.NXDOMAIN)
                return
            response.answer.append(self._rrset(name, "CNAME", cname))
            name = _plain(cname[0])
            if not self._zone.follows_cnames:
                return

    def _rrset(self, name: str, kind: str, values: list[str]) -> dns.rrset.RRset:
        if kind in ("MX", "CNAME", "PTR"):
            values = [value if value.endswith(".") else f"{value}." for value in values]
        if kind == "TXT":
            values = [" ".join(f'"{part}"' for part in _strings(value)) for value in values]
        return dns.rrset.from_text(f"{name}.", self._zone.ttl, "IN", kind, *values)

    async def serve_tcp(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            (length,) = struct.unpack("!H", await reader.readexactly(2))
            response = await self.answer(await reader.readexactly(length))
            if response is not None:
                wire = response.to_wire()
                writer.write(struct.pack("!H", len(wire)) + wire)
                await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def serve_udp(self, packet: bytes, peer: tuple[str, int], transport: Any) -> None:
        response = await self.answer(packet)
        if response is None:
            return
        if self._zone.truncates:
            response.answer.clear()
            response.flags |= dns.flags.TC
        transport.sendto(response.to_wire(max_size=65535), peer)


def _strings(value: str) -> list[str]:
    """Return a TXT value in pieces of at most 255 bytes."""
    value = value.strip('"')
    return [value[i : i + 255] for i in range(0, len(value), 255)] or [""]


class _Udp(asyncio.DatagramProtocol):
    def __init__(self, server: _Server) -> None:
        self._server = server
        self._transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        task = asyncio.ensure_future(self._server.serve_udp(data, addr, self._transport))
        self._server.tasks.add(task)
        task.add_done_callback(self._server.tasks.discard)
