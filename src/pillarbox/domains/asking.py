"""Asking DNS about domains, past every cache of ours, on dnspython and asyncio.

With servers named by the operator only those are asked, in turn. Otherwise two parties are: the servers
that are responsible for the domain (they know of a change at once), and the system's resolvers (they see
what the rest of the world sees, and answer where port 53 is closed). Each gives a sighting of its own.

No domain delays another. So many questions may be on their way at once; one that has no answer after a
moment gives its place away and goes on waiting among the slow ones, whose number is bounded too. A server of
a domain's own that stays silent several times is left alone for a while. Names and addresses of those
servers come from strangers, so only public addresses are asked, and those that the operator allowed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from ipaddress import ip_address
from typing import Final, NamedTuple

import dns.asyncquery
import dns.exception
import dns.flags
import dns.message
import dns.name
import dns.rcode
import dns.rdatatype
import dns.resolver

from pillarbox.domains.names import parents
from pillarbox.domains.sightings import Question, Said, Sighting, Sightings, settled
from pillarbox.kernel.clock import Clock
from pillarbox.kernel.dns import MAX_CNAMES, Answer
from pillarbox.kernel.reach import Network, is_own, is_public

DNS_PORT: Final = 53
ROUNDS: Final = (1.5, 3.0)
"""How long a server may take, in the first round of all servers and in the second."""

LIFETIME: Final = 10.0
"""How long one question may take in all."""

IN_FLIGHT: Final = 100
QUICK: Final = 0.5
"""After so many seconds a question counts as slow and makes room for another."""

MOST_SLOW: Final = 400
MOST_SERVERS: Final = 4
MOST_REFERRALS: Final = 4
EDNS_PAYLOAD: Final = 1232
SILENCES: Final = 3
LEFT_ALONE: Final = 30.0
REMEMBERED: Final = 60.0
MOST_REMEMBERED: Final = 20_000

TYPES: Final = {"MX": ("MX",), "TXT": ("TXT",), "CNAME": ("CNAME",), "ADDRESSES": ("A", "AAAA")}


class Server(NamedTuple):
    """A DNS server; `name` is what people know it by."""

    address: str
    port: int
    name: str = ""

    def __str__(self) -> str:
        at = self.address if self.port == DNS_PORT else f"{self.address} port {self.port}"
        return f"{self.name} ({at})" if self.name else at
