"""Shapes of the claim endpoints (domains.md section 5)."""

from __future__ import annotations

from typing import Annotated, Literal
from uuid import UUID

from msgspec import Struct

from pillarbox.domains.claims.policy import ClaimBlock, ClaimFailure, Status
from pillarbox.domains.claims.queries import ClaimOptions, DomainClaim
from pillarbox.domains.wire import Label, Name, Region
from pillarbox.kernel.http.schemas import one_of
from pillarbox.kernel.wire.instants import DatabaseTime
from pillarbox.kernel.wire.shapes import from_row


class NewClaim(Struct, kw_only=True):
    name: Name
    region: Region = "us-east-1"
    custom_return_path: Label = "send"
    open_tracking: bool = False
    click_tracking: bool = False
    tracking_subdomain: Label | None = None


class Proof(Struct, kw_only=True):
    """The TXT record that proves control of the name."""

    type: Literal["TXT"]
    name: str
    value: str
    ttl: Literal["Auto"]


class ShownClaim(Struct, kw_only=True):
    object: Literal["domain_claim"]
    id: UUID
    name: str
    status: Annotated[str, one_of(Status)]
    domain_id: UUID | None
    region: str | None
    record: Proof
    blocked_reason: Annotated[str, one_of(ClaimBlock)] | None
    failure_reason: Annotated[str, one_of(ClaimFailure)] | None
    created_at: DatabaseTime
    expires_at: DatabaseTime


def options_of(new_claim: NewClaim) -> ClaimOptions:
    """Return the options of the request in normal form."""
    return ClaimOptions(
        region=new_claim.region,
        return_path=new_claim.custom_return_path.lower(),
        tracking_subdomain=new_claim.tracking_subdomain and new_claim.tracking_subdomain.lower(),
        open_tracking=new_claim.open_tracking,
        click_tracking=new_claim.click_tracking,
    )


def shown(claim: DomainClaim) -> ShownClaim:
    """Return a claim as every endpoint answers it."""
    return from_row(
        ShownClaim,
        claim,
        object="domain_claim",
        status=claim.status.value,
        region=claim.options.region,
        record=Proof(type="TXT", name=claim.name, value=claim.token, ttl="Auto"),
    )
