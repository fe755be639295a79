"""The values of this installation that stand in DNS records, and the names that no team can add."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

SELECTOR = "pillarbox"


class OwnershipProof(Enum):
    """Whether a receiving-only domain must show a DKIM record (domains.md section 2)."""

    AUTO = "auto"
    ALWAYS = "always"
    NEVER = "never"


@dataclass(frozen=True, slots=True)
class MailInstallation:
    """`hostname` is the mail host: MX target, bounce host and the `a:` of SPF."""

    hostname: str
    tracking_host: str
    public_host: str
    simulator_domains: frozenset[str] = frozenset({"pillarbox.test", "resend.dev"})
    inbound_domain: str | None = None
    selector: str = SELECTOR
    spf_value: str | None = None
    receiving_ownership_proof: OwnershipProof = OwnershipProof.AUTO
    most_domains: int | None = None

    @property
    def spf(self) -> str:
        """The SPF record that a return path is asked to publish."""
        return self.spf_value or f"v=spf1 a:{self.hostname} ~all"

    @property
    def reserved(self) -> frozenset[str]:
        """Names that no team can add."""
        own = {self.hostname, self.tracking_host, self.public_host}
        return self.simulator_domains | own | ({self.inbound_domain} if self.inbound_domain else set())

    def reserves(self, name: str) -> bool:
        """Return whether no team can add the name: it is the installation's, or below the domain at which
        every team receives."""
        return name in self.reserved or (
            self.inbound_domain is not None and name.endswith(f".{self.inbound_domain}")
        )
