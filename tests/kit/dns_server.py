"""A scripted DNS server on loopback: real UDP and TCP packets, answers by script.

    async with DnsServer('''
        send.harbor.example     MX     10 mx.pillar.example
        k._domainkey.harbor.example TXT "v=DKIM1; " "p=MIIB"        two strings of one record
        *.wild.example          TXT    "v=spf1 -all"                RFC 4592
        sick.example            !      SERVFAIL
    ''') as dns:
        dns.port

Values are written as in a zone file; names in them are absolute, with or without the final dot. Faults: an
RCODE (SERVFAIL, REFUSED, FORMERR), `SILENCE`, `CUT` (over UDP only the truncation bit), `GARBAGE`,
`NO_EDNS` (FORMERR for questions with EDNS), `LAME` (a referral upwards), and `FORGED` (an answer with a
wrong id before the right one). A fault of `*` is one of every name. A name that nothing is known of does not
exist; one above another exists without data.

`recursive` follows CNAMEs to the end; without it the server is authoritative for all it knows, leaves the
rest of a chain to the one who asks, and refers to the name servers of zones that are cut off (`cut`).
"""

from __future__ import annotations

import asyncio
import re
import struct
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import dns.flags
import dns.message
import dns.name
import dns.rcode
import dns.rdataclass
import dns.rdatatype
import dns.rrset

TTL = 300
MOST_HOPS = 30


@dataclass(frozen=True, slots=True)
class Asked:
    """One question as it arrived."""

    name: str
    kind: str
    over: str
    recursion: bool


class DnsServer:
    """One server on one free port, for UDP and TCP. `at` puts it on another loopback address."""

    def __init__(
        self, script: str = "", *, recursive: bool = True, at: str = "127.0.0.1", port: int = 0
    ) -> None:
        self.asked: list[Asked] = []
        self.changed = asyncio.Event()
        self.hold: asyncio.Event | None = None
        """While this is set to an event, answers wait for it."""
        self.recursive = recursive
        self.host = at
        self.port = port
        self._records: dict[tuple[str, str], list[str]] = {}
        self._faults: dict[str, str] = {}
        self._cuts: dict[str, list[str]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._udp: Any = None
        self._tcp: Any = None
        self.write(script)

    @property
    def address(self) -> tuple[str, int]:
        return self.host, self.port

    # The script.

    def write(self, script: str) -> None:
        """Add to what the server knows."""
        for line in script.splitlines():
            if not line.strip():
                continue
            name, kind, value = line.split(None, 2)
            if kind == "!":
                self.fault(name, value.strip())
            else:
                self.add(name, kind, value.strip())

    def add(self, name: str, kind: str, *values: str) -> None:
        self._records.setdefault((plain(name), kind), []).extend(values)

    def put(self, name: str, kind: str, *values: str) -> None:
        """Put exactly these records, whatever was there; none removes them."""
        self._records.pop((plain(name), kind), None)
        if values:
            self.add(name, kind, *values)

    def values(self, name: str, kind: str) -> list[str]:
        """Return the records of a name, as they were written."""
        return list(self._records.get((plain(name), kind), []))

    def fault(self, name: str, how: str = "") -> None:
        """Make questions for that name fail; "" heals it."""
        self._faults[plain(name)] = how

    def cut(self, zone: str, *servers: str) -> None:
        """Refer questions below `zone` to other servers."""
        self._cuts[plain(zone)] = list(servers)

    # The wire.

    async def __aenter__(self) -> DnsServer:
        self._tcp = await asyncio.start_server(self._serve_tcp, self.host, self.port)
        self.port = self._tcp.sockets[0].getsockname()[1]
        loop = asyncio.get_running_loop()
        self._udp, _ = await loop.create_datagram_endpoint(
            lambda: _Udp(self), local_addr=(self.host, self.port)
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._udp.close()
        self._tcp.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def spawn(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve_tcp(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            (length,) = struct.unpack("!H", await reader.readexactly(2))
            for packet in await self.answers(await reader.readexactly(length), "tcp"):
                writer.write(struct.pack("!H", len(packet)) + packet)
            await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def answers(self, packet: bytes, over: str) -> list[bytes]:
        """Return the packets that go back."""
        query = dns.message.from_wire(packet)
        question = query.question[0]
        name, kind = plain(question.name.to_text()), dns.rdatatype.to_text(question.rdtype)
        self.asked.append(Asked(name, kind, over, bool(query.flags & dns.flags.RD)))
        self.changed.set()
        if self.hold is not None:
            await self.hold.wait()
        fault = self._fault(name)
        if fault == "SILENCE":
            return []
        if fault == "GARBAGE":
            return [packet[:2] + b"\x80\x00 not DNS"]
        response = dns.message.make_response(query)
        if fault == "CUT" and over == "udp":
            response.flags |= dns.flags.TC
        elif fault == "LAME":
            response.authority.append(rrset("", "NS", ["a.root.example."]))
        elif fault == "NO_EDNS" and query.edns >= 0:
            response = dns.message.make_response(query)
            response.use_edns(False)
            response.set_rcode(dns.rcode.FORMERR)
        else:
            self._fill(response, name, kind)
        wire = response.to_wire(max_size=65535)
        if fault == "FORGED":
            forged = bytes([wire[0] ^ 0xFF]) + wire[1:]
            return [forged, wire]
        return [wire]

    def _fault(self, name: str) -> str:
        return self._faults.get(name, self._faults.get("*", ""))

    def _fill(self, response: dns.message.Message, name: str, kind: str) -> None:
        response.flags |= dns.flags.RA if self.recursive else dns.flags.AA
        for _ in range(MOST_HOPS):
            fault = self._fault(name)
            if fault in ("SERVFAIL", "REFUSED", "FORMERR"):
                response.answer.clear()
                response.set_rcode(dns.rcode.from_text(fault))
                return
            if servers := self._referral(name):
                response.flags &= ~dns.flags.AA
                response.authority.append(rrset(servers[0], "NS", servers[1:]))
                return
            source = self._source(name)
            if records := self._records.get((source, kind)):
                response.answer.append(rrset(name, kind, records))
                return
            if not (cname := self._records.get((source, "CNAME"))):
                if not self._exists(source):
                    response.set_rcode(dns.rcode.NXDOMAIN)
                return
            response.answer.append(rrset(name, "CNAME", cname))
            name = plain(cname[0])
            if not self.recursive:
                return

    def _referral(self, name: str) -> list[str]:
        for zone, servers in self._cuts.items():
            if name == zone or name.endswith(f".{zone}"):
                return [zone, *servers]
        return []

    def _source(self, name: str) -> str:
        """Return the name whose records are given: itself, or the wildcard that stands for it (RFC 4592)."""
        if self._exists(name):
            return name
        above = name
        while above:
            above = above.partition(".")[2]
            if any(known == f"*.{above}" for known, _ in self._records):
                return f"*.{above}"
            if self._exists(above):
                break
        return name

    def _exists(self, name: str) -> bool:
        return any(known == name or known.endswith(f".{name}") for known, _ in self._records)


class _Udp(asyncio.DatagramProtocol):
    def __init__(self, server: DnsServer) -> None:
        self._server = server
        self._transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        self._server.spawn(self._answer(data, addr))

    async def _answer(self, packet: bytes, peer: tuple[str, int]) -> None:
        for wire in await self._server.answers(packet, "udp"):
            self._transport.sendto(wire, peer)


def plain(name: str) -> str:
    return name.rstrip(".").lower()


def rrset(name: str, kind: str, values: list[str]) -> dns.rrset.RRset:
    """Return the records of a name; a TXT value of more than 255 bytes is split."""
    if kind == "TXT":
        values = [text_value(value) for value in values]
    elif kind in ("MX", "CNAME", "NS", "PTR"):
        values = [value if value.endswith(".") else f"{value}." for value in values]
    return dns.rrset.from_text_list(dns.name.from_text(name or "."), TTL, dns.rdataclass.IN, kind, values)


def text_value(value: str) -> str:
    """Return a TXT value as a zone file has it: bare text is one string, and what is longer than 250
    is split."""
    quoted = re.findall(r'"((?:[^"\\]|\\.)*)"', value) if value.startswith('"') else [value]
    plain_texts = [re.sub(r"\\(.)", r"\1", text) for text in quoted] if value.startswith('"') else quoted
    parts = [text[at : at + 250] for text in plain_texts for at in range(0, max(1, len(text)), 250)]
    return " ".join('"' + re.sub(r'(["\\])', r"\\\1", part) + '"' for part in parts)
