"""Whether a credential may send from a domain (emails.md 1.6): the rule of every way by which mail is
accepted. Addresses of senders may have policies of their own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from pillarbox.domains.senders import SenderDomain, Senders
from pillarbox.emails.outgoing import OutgoingEmail
from pillarbox.kernel.security.authentication import Caller
from pillarbox.kernel.wire.problems import Forbidden, RateLimited

MOST_ECHOED = 100
"""At most so much of a request's own text stands in a message (conventions section 5)."""


class DomainNotVerified(Forbidden):
    def __init__(self, domain: str) -> None:
        super().__init__(
            f"The {domain[:MOST_ECHOED]} domain is not verified. Add and verify it, then try again."
        )


class KeyOfAnotherDomain(Forbidden):
    def __init__(self, domain: str) -> None:
        super().__init__(f"This API key is not authorized to send emails from {domain[:MOST_ECHOED]}.")


@dataclass(frozen=True, slots=True)
class PermittedSenders:
    """Finds the domain of a sender that may be used. `simulator_domains` are for tests of the API: mail from
    them goes to few addresses only, and the accepting code has to check those."""

    senders: Senders
    simulator_domains: frozenset[str]
    domain_required: bool

    async def find(
        self, team_id: UUID, name: str, key_domain: UUID | None, *, is_simulator: bool = False
    ) -> SenderDomain | None:
        """Return the team's domain of this name, None where it needs none; raise 403 where it may not send,
        or a key of the domain `key_domain` may not send from it. One of the simulator is refused unless the
        caller takes it."""
        domain = await self.senders.find(team_id, name)
        if key_domain is not None and (domain is None or domain.id != key_domain):
            raise KeyOfAnotherDomain(name)
        if name in self.simulator_domains:
            if not is_simulator:
                raise DomainNotVerified(name)
            return None
        if domain is not None and not domain.sending:
            raise DomainNotVerified(name)
        if self.domain_required and (domain is None or not domain.may_send):
            raise DomainNotVerified(name)
        return domain


class PolicyRefusal(Forbidden):
    """The policy of the sender's address refuses the mail."""


class PolicyLimitReached(RateLimited):
    """As many mails were sent from the address as its policy allows for now."""


class SenderPolicies(Protocol):
    """Judges mail by the policy of the address in its From; the inboxes have policies (inboxes.md 3.7)."""

    async def applied(self, caller: Caller, outgoing: OutgoingEmail) -> OutgoingEmail:
        """Return the mail as the policy wants it; raise PolicyRefusal or PolicyLimitReached where it may not
        be sent by this caller now."""
        ...


class NoSenderPolicies:
    """Where there are no inboxes, no mail has a policy."""

    async def applied(self, caller: Caller, outgoing: OutgoingEmail) -> OutgoingEmail:
        return outgoing
