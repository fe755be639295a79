"""Shapes of the grants endpoints (oauth.md 8); field order is the contract's."""

from __future__ import annotations

from typing import Literal
from uuid import UUID

from msgspec import Struct

from pillarbox.kernel.wire.instants import DatabaseTime, IsoTime, iso_style
from pillarbox.kernel.wire.shapes import from_row
from pillarbox.oauth.bearer.queries import GrantRevocation, ListedGrant


class GrantClient(Struct, kw_only=True):
    name: str
    logo_uri: str | None


class GrantItem(Struct, kw_only=True):
    """`resource` is there for the sake of clients that read it."""

    id: UUID
    client_id: str
    scopes: list[str]
    resource: None
    created_at: DatabaseTime
    revoked_at: DatabaseTime | None
    revoked_reason: str | None
    client: GrantClient


class GrantRevoked(Struct, kw_only=True):
    object: Literal["oauth_grant"]
    id: UUID
    revoked_at: IsoTime
    revoked_reason: str


def item(grant: ListedGrant) -> GrantItem:
    """Return a grant as the list shows it."""
    program = grant.program
    return from_row(
        GrantItem,
        grant,
        scopes=list(grant.scopes),
        resource=None,
        client=GrantClient(name=program["name"], logo_uri=program.get("logo_uri")),
    )


def revoked(grant_id: UUID, grant_revocation: GrantRevocation) -> GrantRevoked:
    """Return a grant that was revoked, now or before."""
    return GrantRevoked(
        object="oauth_grant",
        id=grant_id,
        revoked_at=iso_style(grant_revocation.revoked_at),
        revoked_reason=grant_revocation.revoked_reason,
    )
