"""A session with the smarthost as delivery opens it: greeting, TLS, login. No mail is offered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pillarbox.delivery.plugin import relay_login, relay_tls
from pillarbox.delivery.smtp import relay_faults
from pillarbox.delivery.smtp.connections import ConnectionKey
from pillarbox.delivery.smtp.next_hops import Greeting
from pillarbox.delivery.smtp.relay_faults import RelayFault
from pillarbox.kernel.settings.kinds import Relay
from pillarbox.mail.smtp.client import ConnectFailed, Timeouts

PATIENCE: Final = Timeouts(connect=8.0, banner=15.0, hello=15.0)


@dataclass(frozen=True, slots=True)
class Smarthost:
    """Opens sessions for real; `hostname` is our name in EHLO."""

    hostname: str

    async def __call__(self, relay: Relay) -> RelayFault | ConnectFailed | None:
        greeting, mode = Greeting(self.hostname, relay_login(relay), PATIENCE), relay_tls(relay)
        session = await greeting.open(ConnectionKey(relay.host, relay.host, relay.port, mode))
        if isinstance(session, ConnectFailed):
            return relay_faults.of_opening(relay.host, session, mode) or session
        await session.quit()
        return None
