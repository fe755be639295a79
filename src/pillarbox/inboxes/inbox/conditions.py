"""Where an inbox may be made: what its domain must have shown (inboxes.md 3.1, docs/decisions/0091)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pillarbox.directory import domains as directory
from pillarbox.domains import lookup
from pillarbox.domains.queries import Domain
from pillarbox.domains.status import SENDING_RECORDS, DomainState, RecordKey, capability_state, state_of
from pillarbox.inboxes.inbox.addresses import domains_in
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.wire.problems import Invalid, InvalidField

MX_IS_COMING: Final = frozenset({DomainState.VERIFIED, DomainState.PENDING, DomainState.TEMPORARY_FAILURE})


@dataclass(frozen=True, slots=True)
class InboundDns:
    """Whether a domain receives only after DNS has shown its MX; the slice `receiving` provides it."""

    is_required: bool


@dataclass(frozen=True, slots=True)
class InboxRules:
    """The operator's settings."""

    inbound_domain: str | None = None
    verified_domains: bool = True
    inbound_dns: bool = True
    most: int = 1000


class NoSuchDomain(InvalidField):
    def __init__(self) -> None:
        super().__init__("email_address", "Its domain must be a domain of your team.")


class InboxDomainNotReady(Invalid):
    """The domain has not shown what an inbox needs."""

    def __init__(self, name: str, missing: str) -> None:
        super().__init__(f"The domain {name[:100]} cannot have inboxes yet: {missing}")


async def domain_of(db: TeamDb, name: str) -> Domain:
    """Return the team's domain of that name; it is there until the transaction ends. 422 where there is
    none."""
    domain = await lookup.named(db, name)
    if domain is None:
        raise NoSuchDomain
    return domain


async def refuse_not_ready(db: TeamDb, domain: Domain, rules: InboxRules, *, forwarding: bool) -> None:
    """Raise a 422 where the domain may not have an inbox of this kind."""
    if forwarding and rules.inbound_domain is None:
        raise InvalidField("forwarding", "This installation has no domain of its own that receives.")
    if domain.claim_id is not None or await directory.owned_elsewhere(db, domain.name):
        raise InboxDomainNotReady(domain.name, "it is verified by another team.")
    if (
        rules.verified_domains
        and capability_state(SENDING_RECORDS, domain.states) is not DomainState.VERIFIED
    ):
        raise InboxDomainNotReady(domain.name, "its DKIM and SPF records are not verified.")
    if forwarding:
        return
    if not domain.receiving:
        raise InboxDomainNotReady(domain.name, "receiving is not enabled for it.")
    if rules.inbound_dns and state_of(RecordKey.RECEIVING, domain.states) not in MX_IS_COMING:
        raise InboxDomainNotReady(domain.name, "its MX record for receiving is neither verified nor pending.")


async def refuse_foreign_name(db: TeamDb, name: str, rules: InboxRules) -> None:
    """Raise a 422 for a name with an address inside that the team may not send from: it would pass for
    another's."""
    for domain in domains_in(name):
        sender = None if domain is None else await lookup.sender(db, domain)
        if sender is None or (rules.verified_domains and not (sender.sending and sender.sending_ok)):
            raise InvalidField(
                "from_name", "An address inside it must be at a domain that you have verified for sending."
            )
