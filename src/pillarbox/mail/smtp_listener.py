"""The sessions of one SMTP door: how many at once, for how long, and how they end when the process stops."""

from __future__ import annotations

import asyncio
import ssl
from collections import Counter, OrderedDict, deque
from ipaddress import ip_address
from socket import socket

from pillarbox.mail import smtp_answers as say
from pillarbox.mail.smtp_answers import Answer
from pillarbox.mail.smtp_server import Desk, Session

LOOK_EVERY = 1.0
MOST_LOGIN_FAILURES = 5
FAILURE_WINDOW = 600.0
MOST_REMEMBERED = 10_000
BACKLOG = 1024


class Listener:
    """One door. `implicit_tls` begins every connection with TLS; otherwise STARTTLS is offered where there is
    a certificate."""

    def __init__(
        self,
        desk: Desk,
        hostname: str,
        *,
        most_octets: int,
        tls: ssl.SSLContext | None = None,
        implicit_tls: bool = False,
        offers_login: bool = False,
        login_needs_tls: bool = True,
        needs_login: bool = False,
        normalize: bool = False,
        most_sessions: int = 2000,
        most_per_network: int = 20,
    ) -> None:
        self.desk = desk
        self.hostname = hostname
        self.most_octets = most_octets
        self.tls = tls
        self.offers_login = offers_login
        self.login_needs_tls = login_needs_tls
        self.needs_login = needs_login
        self.normalize = normalize
        self.stopping = False
        self._implicit = implicit_tls
        self._most = most_sessions
        self._most_per_network = most_per_network
        self._sessions: set[Session] = set()
        self._networks: Counter[str] = Counter()
        self._failures: OrderedDict[str, deque[float]] = OrderedDict()
        self._server: asyncio.Server | None = None
        self._sweeping: asyncio.Task[None] | None = None
        self._empty = asyncio.Event()
        self._empty.set()

    async def open(self, door: socket) -> None:
        """Accept connections on a bound socket."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: Session(self), sock=door, ssl=self.tls if self._implicit else None, backlog=BACKLOG
        )
        self._sweeping = asyncio.create_task(self._sweep())

    @property
    def sessions(self) -> int:
        """How many there are now."""
        return len(self._sessions)

    def reload(self, tls: ssl.SSLContext) -> None:
        """Use another certificate for handshakes from now on (STARTTLS; an implicit door loads it into the
        context that it has)."""
        self.tls = tls

    async def stop(self, grace: float) -> None:
        """Accept nothing more; let transactions end within `grace` seconds; nobody is left without a word."""
        self.stopping = True
        if self._server is not None:
            self._server.close()
        for session in tuple(self._sessions):
            if session.is_idle:
                session.close(say.STOPPING)
        try:
            async with asyncio.timeout(grace):
                await self._empty.wait()
        except TimeoutError:
            for session in tuple(self._sessions):
                session.close(say.STOPPING)
        if self._sweeping is not None:
            self._sweeping.cancel()
            await asyncio.gather(self._sweeping, return_exceptions=True)

    async def _sweep(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(LOOK_EVERY)
            now = loop.time()
            for session in tuple(self._sessions):
                session.expire(now)

    # What sessions ask -------------------------------------------------------------------------------

    def admit(self, session: Session) -> Answer | None:
        network = network_of(session.peer)
        if len(self._sessions) >= self._most or self._networks[network] >= self._most_per_network:
            return say.TOO_MANY_SESSIONS
        session.admitted = True
        self._networks[network] += 1
        self._sessions.add(session)
        self._empty.clear()
        return None

    def left(self, session: Session) -> None:
        if not session.admitted:
            return
        session.admitted = False
        self._sessions.discard(session)
        network = network_of(session.peer)
        self._networks[network] -= 1
        if self._networks[network] <= 0:
            del self._networks[network]
        if not self._sessions:
            self._empty.set()

    def may_login(self, session: Session) -> bool:
        return len(self._recent(session.peer)) < MOST_LOGIN_FAILURES

    def login_failed(self, session: Session) -> None:
        failures = self._recent(session.peer)
        failures.append(asyncio.get_running_loop().time())
        self._failures[session.peer] = failures
        self._failures.move_to_end(session.peer)
        while len(self._failures) > MOST_REMEMBERED:
            self._failures.popitem(last=False)

    def _recent(self, peer: str) -> deque[float]:
        failures = self._failures.get(peer)
        if failures is None:
            return deque(maxlen=MOST_LOGIN_FAILURES)
        oldest = asyncio.get_running_loop().time() - FAILURE_WINDOW
        while failures and failures[0] < oldest:
            failures.popleft()
        return failures


def network_of(peer: str) -> str:
    """Who counts as one client: an IPv4 address, or the /64 of an IPv6 one."""
    try:
        address = ip_address(peer.partition("%")[0])
    except ValueError:
        return peer
    if address.version == 4:
        return peer
    mapped = address.ipv4_mapped
    return str(mapped) if mapped is not None else address.exploded[:19]
