"""Shapes of the domains endpoints (domains.md sections 1 and 4)."""

from __future__ import annotations

from typing import Annotated, Literal
from uuid import UUID

from msgspec import UNSET, Meta, Struct, UnsetType

from pillarbox.domains.dns.records import Record, records_of
from pillarbox.domains.installation import MailInstallation
from pillarbox.domains.names import LONGEST_INPUT
from pillarbox.domains.queries import Domain
from pillarbox.domains.status import DomainState, domain_state
from pillarbox.kernel.http.schemas import one_of
from pillarbox.kernel.wire.instants import DatabaseTime
from pillarbox.kernel.wire.shapes import from_row

Switch = Literal["enabled", "disabled"]
Region = Annotated[
    Literal["us-east-1", "eu-west-1", "sa-east-1", "ap-northeast-1"],
    Meta(extra={"problem": "invalid_region"}),
]
Label = Annotated[
    str,
    Meta(
        pattern="^[A-Za-z]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?$",
        extra={"reason": "Use one label: a letter, then letters, digits and hyphens, 63 characters at most."},
    ),
]


Name = Annotated[str, Meta(extra_json_schema={"maxLength": LONGEST_INPUT})]
DomainStatus = Annotated[
    str, one_of(state for state in DomainState if state is not DomainState.TEMPORARY_FAILURE)
]


class WantedCapabilities(Struct, kw_only=True):
    sending: Switch = "enabled"
    receiving: Switch = "disabled"


class NewDomain(Struct, kw_only=True):
    name: Name
    region: Region = "us-east-1"
    custom_return_path: Label = "send"
    capabilities: WantedCapabilities | None = None
    open_tracking: bool = False
    click_tracking: bool = False
    tls: Literal["opportunistic", "enforced"] = "opportunistic"
    tracking_subdomain: Label | None = None


class ChangedCapabilities(Struct, kw_only=True):
    sending: Switch | UnsetType = UNSET
    receiving: Switch | UnsetType = UNSET


class ChangedDomain(Struct, kw_only=True):
    capabilities: ChangedCapabilities | UnsetType = UNSET
    open_tracking: bool | UnsetType = UNSET
    click_tracking: bool | UnsetType = UNSET
    tls: Literal["opportunistic", "enforced"] | UnsetType = UNSET
    tracking_subdomain: Label | UnsetType | None = UNSET


class DomainChanged(Struct, kw_only=True):
    object: Literal["domain"]
    id: UUID


class DomainDeleted(Struct, kw_only=True):
    object: Literal["domain"]
    id: UUID
    deleted: Literal[True]


class Capabilities(Struct, kw_only=True):
    sending: Switch
    receiving: Switch


class CreatedDomain(Struct, kw_only=True):
    id: UUID
    name: str
    created_at: DatabaseTime
    status: DomainStatus
    capabilities: Capabilities
    records: list[Record]
    region: str
    open_tracking: bool
    click_tracking: bool
    tracking_subdomain: str | UnsetType = UNSET


class DomainItem(Struct, kw_only=True):
    id: UUID
    name: str
    status: DomainStatus
    created_at: DatabaseTime
    region: str
    open_tracking: bool
    click_tracking: bool
    tracking_subdomain: str | UnsetType
    capabilities: Capabilities


class FullDomain(Struct, kw_only=True):
    object: Literal["domain"]
    id: UUID
    name: str
    status: DomainStatus
    created_at: DatabaseTime
    region: str
    open_tracking: bool
    click_tracking: bool
    tracking_subdomain: str | UnsetType
    capabilities: Capabilities
    records: list[Record]


def created(domain: Domain, here: MailInstallation, *, proof: bool) -> CreatedDomain:
    """Return the answer to a creation."""
    return from_row(
        CreatedDomain,
        domain,
        status=status_of(domain, proof=proof),
        capabilities=capabilities_of(domain),
        records=records_of(domain, here, proof=proof),
        tracking_subdomain=domain.tracking_subdomain or UNSET,
    )


def item(domain: Domain, *, proof: bool) -> DomainItem:
    """Return a domain as the list shows it."""
    return from_row(
        DomainItem,
        domain,
        status=status_of(domain, proof=proof),
        tracking_subdomain=domain.tracking_subdomain or UNSET,
        capabilities=capabilities_of(domain),
    )


def full(domain: Domain, here: MailInstallation, *, proof: bool) -> FullDomain:
    """Return a domain by itself."""
    return from_row(
        FullDomain,
        domain,
        object="domain",
        status=status_of(domain, proof=proof),
        tracking_subdomain=domain.tracking_subdomain or UNSET,
        capabilities=capabilities_of(domain),
        records=records_of(domain, here, proof=proof),
    )


def status_of(domain: Domain, *, proof: bool) -> str:
    """Return the status that is shown; a placeholder has nothing to check."""
    if domain.claim_id is not None:
        return DomainState.NOT_STARTED.value
    return domain_state(
        sending=domain.sending, receiving=domain.receiving, proof=proof, states=domain.states
    ).value


def capabilities_of(domain: Domain) -> Capabilities:
    return Capabilities(sending=_switch(domain.sending), receiving=_switch(domain.receiving))


def _switch(on: bool) -> Switch:
    return "enabled" if on else "disabled"
