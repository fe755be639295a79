"""One DNS question to one server: over UDP, and over TCP where the answer does not fit.

The datagrams are written and sent here, because that is half of what a question costs; dnspython makes sense
of the answers. Each question has a random id and a socket of its own that is connected to the server, so a
forged answer has to guess both. An answer that does not fit the question is passed over.
"""

from __future__ import annotations

import asyncio
import secrets
import struct
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import dns.exception
import dns.flags
import dns.message
import dns.name
import dns.rcode
import dns.rdatatype

from pillarbox.kernel.network.dns_answers import AnswerKind

DNS_PORT: Final = 53
PAYLOAD: Final = 1232
"""The bytes that a datagram may hold without being cut on its way."""

EDNS: Final = struct.pack("!BHHIH", 0, 41, PAYLOAD, 0, 0)
OLD_SERVER: Final = frozenset({dns.rcode.FORMERR, dns.rcode.NOTIMP, dns.rcode.BADVERS})
"""The answers of servers that do not know EDNS."""


class NotTheAnswer(dns.exception.DNSException):
    """Bytes that answer another question, or none."""


class Server(NamedTuple):
    """A DNS server; `name` is what people know it by."""

    address: str
    port: int = DNS_PORT
    name: str = ""

    def __str__(self) -> str:
        at = self.address if self.port == DNS_PORT else f"{self.address} port {self.port}"
        return f"{self.name} ({at})" if self.name else at


class Referral(NamedTuple):
    """Other servers know: those of `zone`."""

    zone: str
    servers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ServerReply:
    """The reply of one server. `through` are the names that CNAMEs led to; with `rest` the chain goes on
    there. `silent` is trouble of a server that gave no answer at all. `detail` tells the trouble of this
    server, `summary` where no server is named. `ttl` is how long DNS lets the answer be kept, in seconds."""

    kind: AnswerKind
    values: tuple[str, ...] = ()
    detail: str = ""
    through: tuple[str, ...] = ()
    rest: str | None = None
    referral: Referral | None = None
    silent: bool = False
    summary: str = "the DNS servers failed"
    ttl: float = 0.0


SILENT: Final = ServerReply(
    AnswerKind.TROUBLE,
    detail="does not answer in time",
    silent=True,
    summary="no DNS server answered in time",
)


async def query_server(server: Server, name: str, kind: str, seconds: float, recursion: bool) -> ServerReply:
    """Ask one server; a timeout and whatever else goes wrong is an answer too."""
    try:
        owner = dns.name.from_text(name, origin=dns.name.root)
    except (dns.exception.DNSException, UnicodeError):
        return ServerReply(AnswerKind.NO_NAME, detail="this is not a domain name")
    try:
        async with asyncio.timeout(seconds):
            response = await _response(server, owner, dns.rdatatype.from_text(kind), recursion)
    except TimeoutError:
        return SILENT
    except (OSError, EOFError, dns.exception.DNSException) as error:
        return ServerReply(AnswerKind.TROUBLE, detail=_trouble(error), silent=isinstance(error, OSError))
    return read(response, kind, recursion=recursion)


def read(response: dns.message.Message, kind: str, *, recursion: bool) -> ServerReply:
    """Return the answer of a response to the question in it."""
    rcode = response.rcode()
    if rcode not in (dns.rcode.NOERROR, dns.rcode.NXDOMAIN):
        code = dns.rcode.to_text(rcode)
        return ServerReply(
            AnswerKind.TROUBLE, detail=f"answers {code}", summary=f"the DNS servers answered {code}"
        )
    if not isinstance(response, dns.message.QueryMessage):
        return ServerReply(AnswerKind.TROUBLE, detail="answers something else than it was asked")
    try:
        chain = response.resolve_chaining()
    except dns.message.ChainTooLong:
        return ServerReply(
            AnswerKind.TROUBLE,
            detail="shows a chain of CNAME records that is too long or a circle",
            summary="the CNAME records form too long a chain",
        )
    except dns.exception.DNSException:
        return ServerReply(AnswerKind.TROUBLE, detail="answers something that contradicts itself")
    through = tuple(_text(cname[0].target) for cname in chain.cnames)
    if chain.answer is not None:
        values = tuple(_value(record, kind) for record in chain.answer)
        return ServerReply(AnswerKind.VALUES, values, through=through, ttl=chain.minimum_ttl)
    if rcode == dns.rcode.NXDOMAIN:
        return ServerReply(AnswerKind.NO_NAME, through=through, ttl=_absence_ttl(response))
    if through:
        return ServerReply(AnswerKind.NO_DATA, through=through, rest=through[-1], ttl=chain.minimum_ttl)
    if not recursion:
        return _without_answer(response)
    return ServerReply(AnswerKind.NO_DATA, ttl=chain.minimum_ttl)


def _absence_ttl(response: dns.message.Message) -> float:
    """Return how long "no such name" may be kept: the zone's SOA says it (RFC 2308, 5)."""
    for rrset in response.authority:
        if rrset.rdtype == dns.rdatatype.SOA:
            return float(min(rrset.ttl, rrset[0].minimum))
    return 0.0


def _without_answer(response: dns.message.Message) -> ServerReply:
    """Return an answer of nothing from a server that should be responsible: no data, or not its zone
    (any more)."""
    kinds = {rrset.rdtype for rrset in response.authority}
    if dns.rdatatype.SOA in kinds or response.flags & dns.flags.AA:
        return ServerReply(AnswerKind.NO_DATA)
    for rrset in response.authority:
        if rrset.rdtype == dns.rdatatype.NS and rrset.name != dns.name.root:
            servers = tuple(_text(record.target) for record in rrset)
            return ServerReply(AnswerKind.TROUBLE, referral=Referral(_text(rrset.name), servers))
    return ServerReply(AnswerKind.TROUBLE, detail="is not responsible for the name")


async def _response(
    server: Server, owner: dns.name.Name, kind: dns.rdatatype.RdataType, recursion: bool
) -> dns.message.Message:
    """Return the response over UDP, else over TCP; without EDNS where the server does not know it."""
    for edns in (True, False):
        query = _query(owner, kind, recursion=recursion, edns=edns)
        response = await _over_udp(server, query, owner, kind)
        if response.flags & dns.flags.TC:
            response = await _over_tcp(server, query, owner, kind)
        if response.rcode() not in OLD_SERVER:
            break
    return response


def _query(owner: dns.name.Name, kind: dns.rdatatype.RdataType, *, recursion: bool, edns: bool) -> bytes:
    """Return a question as it goes over the wire (RFC 1035 section 4.1; RFC 6891)."""
    flags = int(dns.flags.RD) if recursion else 0
    header = secrets.token_bytes(2) + struct.pack("!HHHHH", flags, 1, 0, 0, int(edns))
    name = owner.to_wire()
    assert name is not None
    return header + name + struct.pack("!HH", kind, 1) + (EDNS if edns else b"")


async def _over_udp(
    server: Server, query: bytes, owner: dns.name.Name, kind: dns.rdatatype.RdataType
) -> dns.message.Message:
    loop = asyncio.get_running_loop()
    waiter = _DatagramWaiter(loop.create_future(), query, owner, kind)
    transport, _ = await loop.create_datagram_endpoint(
        lambda: waiter, remote_addr=(server.address, server.port)
    )
    try:
        transport.sendto(query)
        return await waiter.response
    finally:
        transport.close()


class _DatagramWaiter(asyncio.DatagramProtocol):
    """Takes the first datagram that fits the question."""

    def __init__(
        self,
        response: asyncio.Future[dns.message.Message],
        query: bytes,
        owner: dns.name.Name,
        kind: dns.rdatatype.RdataType,
    ) -> None:
        self.response = response
        self._query = query
        self._owner = owner
        self._kind = kind

    def datagram_received(self, data: bytes, addr: Any) -> None:
        if self.response.done():
            return
        try:
            self.response.set_result(_parsed(data, self._query, self._owner, self._kind))
        except dns.exception.DNSException:
            return

    def error_received(self, exc: Exception) -> None:
        if not self.response.done():
            self.response.set_exception(exc)


async def _over_tcp(
    server: Server, query: bytes, owner: dns.name.Name, kind: dns.rdatatype.RdataType
) -> dns.message.Message:
    reader, writer = await asyncio.open_connection(server.address, server.port)
    try:
        writer.write(struct.pack("!H", len(query)) + query)
        (length,) = struct.unpack("!H", await reader.readexactly(2))
        return _parsed(await reader.readexactly(length), query, owner, kind)
    finally:
        writer.close()


def _parsed(
    data: bytes, query: bytes, owner: dns.name.Name, kind: dns.rdatatype.RdataType
) -> dns.message.Message:
    """Return the response to this query; raise DNSException for anything else."""
    if data[:2] != query[:2]:
        raise NotTheAnswer
    response = dns.message.from_wire(data, ignore_trailing=True)
    asked = response.question
    if not response.flags & dns.flags.QR or (asked and (asked[0].name, asked[0].rdtype) != (owner, kind)):
        raise NotTheAnswer
    return response


def _value(record: Any, kind: str) -> str:
    if kind == "MX":
        return f"{record.preference} {_text(record.exchange) or '.'}"
    if kind == "TXT":
        return b"".join(record.strings).decode("utf-8", "replace")
    if kind in ("CNAME", "NS", "PTR"):
        return _text(record.target)
    return str(record.address)


def _text(name: dns.name.Name) -> str:
    return name.to_text(omit_final_dot=True).lower()


def _trouble(error: Exception) -> str:
    if isinstance(error, ConnectionRefusedError):
        return "does not accept questions"
    if isinstance(error, OSError):
        return "cannot be reached"
    return "answers something that is not DNS"
