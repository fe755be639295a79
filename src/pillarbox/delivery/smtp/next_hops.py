"""Next hops: a relay that takes everything, or the servers that DNS names."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from dataclasses import dataclass, field

from pillarbox.delivery.rate_control import SiteLimits
from pillarbox.delivery.site_scheduler import Site
from pillarbox.delivery.smtp import relay_faults
from pillarbox.delivery.smtp.connections import ConnectionKey
from pillarbox.delivery.smtp.mta_sts_policies import Policies
from pillarbox.delivery.smtp.relay_faults import RelayFault
from pillarbox.mail.smtp.client import ConnectFailed, SmtpConnection, Timeouts, TlsMode, Transaction
from pillarbox.mail.smtp.mta_sts import Policy
from pillarbox.mail.smtp.mx import Host, HostPolicy, Hosts, MxLookup, NoHosts, hosts_for

RELAY = SiteLimits(20, 100)
DESTINATION = SiteLimits(2, 10)
"""Slots of all processes together, at the start and at the most (`rate_control`)."""

SITES_KNOWN = 50_000


@dataclass(frozen=True, slots=True)
class RelayHop:
    """Everything goes to one smarthost."""

    host: str
    relay_port: int
    mode: TlsMode

    def site(self, destination: str) -> Site:
        return Site("relay", RELAY)

    async def hosts(self, destination: str) -> Hosts | NoHosts:
        return Hosts((Host(self.host, (self.host,)),))

    async def policy(self, destination: str) -> Policy | None:
        return None

    def refusal(self, failed: ConnectFailed) -> RelayFault | None:
        return relay_faults.of_opening(self.host, failed, self.mode)

    def refusal_in(self, done: Transaction) -> RelayFault | None:
        faults = [relay_faults.of_answer(self.host, answer.stage, answer.reply) for answer in done.answers]
        return faults[0] if all(faults) else None

    def port(self) -> int:
        return self.relay_port

    def tls(self, *, required: bool) -> TlsMode:
        return TlsMode.REQUIRED if required and self.mode.may_be_clear else self.mode


@dataclass(frozen=True, slots=True)
class DirectHops:
    """Every destination's own servers, by MX."""

    lookup: MxLookup
    reach: HostPolicy
    shuffle: Callable[[list[str]], None]
    remote_port: int
    policies: Policies | None = None
    sites: dict[str, str] = field(default_factory=dict)

    def site(self, destination: str) -> Site:
        return Site(self.sites.get(destination, destination), DESTINATION)

    async def hosts(self, destination: str) -> Hosts | NoHosts:
        found = await hosts_for(destination, self.lookup, shuffle=self.shuffle, policy=self.reach)
        if isinstance(found, Hosts):
            self._learn(destination, found)
        return found

    async def policy(self, destination: str) -> Policy | None:
        return await self.policies.of(destination) if self.policies is not None else None

    def _learn(self, destination: str, hosts: Hosts) -> None:
        """Let destinations with the same servers share one site from the next item on."""
        if len(self.sites) >= SITES_KNOWN:
            self.sites.clear()
        self.sites[destination] = "mx " + " ".join(sorted({host.name for host in hosts.hosts}))

    def refusal(self, failed: ConnectFailed) -> RelayFault | None:
        """Return None: a failure of other people's servers counts for the mail alone."""
        return None

    def refusal_in(self, done: Transaction) -> RelayFault | None:
        return None

    def port(self) -> int:
        return self.remote_port

    def tls(self, *, required: bool) -> TlsMode:
        return TlsMode.REQUIRED if required else TlsMode.OPPORTUNISTIC


@dataclass(frozen=True, slots=True)
class Greeting:
    """How sessions are opened: our name, the relay's user when there is one, and whose certificates count
    where they are checked (the system's, when it is not said)."""

    hello: str
    login: tuple[str, str] | None = None
    timeouts: Timeouts | None = None
    trust: ssl.SSLContext | None = None

    async def open(self, address: ConnectionKey) -> SmtpConnection | ConnectFailed:
        return await SmtpConnection.open(
            (address.ip, address.port),
            server_name=address.server_name,
            hello=self.hello,
            tls=address.tls,
            timeouts=self.timeouts,
            login=self.login,
            trust=self.trust,
        )
