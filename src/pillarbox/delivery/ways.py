"""The two ways out: a relay that takes everything, or the servers that DNS names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pillarbox.delivery.connections import Address
from pillarbox.delivery.lanes import Site
from pillarbox.mail.mx import Host, Hosts, Lookup, NoHosts, Reach, hosts_for
from pillarbox.mail.smtp_client import ConnectFailed, Connection, Timeouts, TlsMode

RELAY_SLOTS = 20
DESTINATION_SLOTS = 10


@dataclass(frozen=True, slots=True)
class RelayWay:
    """Everything goes to one smarthost."""

    host: str
    relay_port: int
    mode: TlsMode

    def site(self, destination: str) -> Site:
        return Site("relay", RELAY_SLOTS)

    async def hosts(self, destination: str) -> Hosts | NoHosts:
        return Hosts((Host(self.host, (self.host,)),))

    def port(self) -> int:
        return self.relay_port

    def tls(self, *, required: bool) -> TlsMode:
        return TlsMode.REQUIRED if required and self.mode.may_be_clear else self.mode


@dataclass(frozen=True, slots=True)
class DirectWay:
    """Every destination's own servers, by MX."""

    lookup: Lookup
    reach: Reach
    shuffle: Callable[[list[str]], None]
    remote_port: int

    def site(self, destination: str) -> Site:
        return Site(destination, DESTINATION_SLOTS)

    async def hosts(self, destination: str) -> Hosts | NoHosts:
        return await hosts_for(destination, self.lookup, shuffle=self.shuffle, reach=self.reach)

    def port(self) -> int:
        return self.remote_port

    def tls(self, *, required: bool) -> TlsMode:
        return TlsMode.REQUIRED if required else TlsMode.OPPORTUNISTIC


@dataclass(frozen=True, slots=True)
class Greeting:
    """How sessions are opened: our name, and the relay's user when there is one."""

    hello: str
    login: tuple[str, str] | None = None
    timeouts: Timeouts | None = None

    async def open(self, address: Address) -> Connection | ConnectFailed:
        return await Connection.open(
            (address.ip, address.port),
            server_name=address.server_name,
            hello=self.hello,
            tls=address.tls,
            timeouts=self.timeouts,
            login=self.login,
        )
