"""Where a webhook may lead (webhooks.md sections 1.1 and 6): what a URL alone shows.

Names are looked up at every attempt, and every address is checked then; here a literal address that may not
be reached is refused at once.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from ipaddress import ip_address

from pillarbox.kernel.network.address_policy import Address, Network, is_public
from pillarbox.kernel.network.web_address import BadUrl, WebAddress, parse_url
from pillarbox.kernel.wire.problems import InvalidField

LONGEST = 2048
MAIL_PORTS = frozenset({25, 465, 587})
"""Never called unless the operator's list names them: a webhook must not talk to mail servers."""

LOOPBACK = (ip_address("127.0.0.1"), ip_address("::1"))

REFUSALS = {
    "form": "Use an absolute `https` URL with a host and without user name, of at most 2048 characters.",
    "scheme": "Use an `https` URL.",
    "port": "This port may not be called.",
    "address": "This address may not be called; it must be a public one.",
}


@dataclass(frozen=True, slots=True)
class EndpointRules:
    """The operator's settings about endpoints; `ports` None: any except those of mail servers."""

    allow_http: bool = False
    ports: Collection[int] | None = None
    allow_private: Sequence[Network] = ()

    def refusal(self, url: str) -> str | None:
        """Return why a URL may not be called, as a key of REFUSALS; None where nothing in it forbids that."""
        address = _parsed(url)
        if address is None:
            return "form"
        if address.scheme == "http" and not self.allow_http:
            return "scheme"
        if not self.permits_port(address.port):
            return "port"
        return None if self._may_be_public(address) else "address"

    def permits_port(self, port: int) -> bool:
        """Return whether a port may be called."""
        return port not in MAIL_PORTS if self.ports is None else port in self.ports

    def check(self, url: str) -> str:
        """Return the URL, or raise a 422 with a sentence that says what is wrong with it."""
        refusal = self.refusal(url)
        if refusal is not None:
            raise InvalidField("endpoint", REFUSALS[refusal])
        return url

    def _may_be_public(self, address: WebAddress) -> bool:
        if address.address is not None:
            return self._permits(address.address)
        if address.host == "localhost" or address.host.endswith(".localhost"):
            return any(self._permits(loopback) for loopback in LOOPBACK)
        return True

    def _permits(self, address: Address) -> bool:
        return is_public(address) or any(address in network for network in self.allow_private)


def _parsed(url: str) -> WebAddress | None:
    if len(url) > LONGEST or url.split() != [url]:
        return None
    try:
        return parse_url(url)
    except BadUrl:
        return None
