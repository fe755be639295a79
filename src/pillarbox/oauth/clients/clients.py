"""Programs that may ask people: registered ones, and those that a document describes (oauth.md 3 and 4)."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final
from uuid import UUID

from pillarbox.kernel.postgres.database import Source
from pillarbox.kernel.wire.uuids import well_formed
from pillarbox.oauth.clients import client_queries
from pillarbox.oauth.clients.client_queries import UsableClient

AUTHORIZATION_CODE: Final = "authorization_code"
REFRESH_TOKEN: Final = "refresh_token"  # noqa: S105 - the name of a grant type
GRANT_TYPES: Final = (AUTHORIZATION_CODE, REFRESH_TOKEN)

NONE: Final = "none"
BASIC: Final = "client_secret_basic"
POST: Final = "client_secret_post"
METHODS: Final = (NONE, BASIC, POST)

DOCUMENT_PREFIX: Final = "https://"


@dataclass(frozen=True, slots=True)
class Client:
    """A program. `host` is that of the document which describes it; None for one that is registered here.
    `id` is its UUID, or the URL of the document."""

    id: str
    name: str
    redirect_uris: tuple[str, ...]
    grant_types: tuple[str, ...]
    auth_method: str
    scopes: tuple[str, ...]
    client_uri: str | None = None
    logo_uri: str | None = None
    host: str | None = None
    is_verified: bool = False
    secret_hash: bytes | None = None

    @property
    def may_refresh(self) -> bool:
        return REFRESH_TOKEN in self.grant_types

    def snapshot(self) -> dict[str, Any]:
        """Return the facts of the program that requests and grants keep: all but its secret."""
        return {
            "name": self.name,
            "redirect_uris": list(self.redirect_uris),
            "grant_types": list(self.grant_types),
            "token_endpoint_auth_method": self.auth_method,
            "scopes": list(self.scopes),
            "client_uri": self.client_uri,
            "logo_uri": self.logo_uri,
            "host": self.host,
            "is_verified": self.is_verified,
        }


def from_snapshot(client_id: str, kept: Mapping[str, Any]) -> Client:
    """Return the program as it was when `snapshot` was made."""
    return Client(
        id=client_id,
        name=kept["name"],
        redirect_uris=tuple(kept["redirect_uris"]),
        grant_types=tuple(kept["grant_types"]),
        auth_method=kept["token_endpoint_auth_method"],
        scopes=tuple(kept["scopes"]),
        client_uri=kept["client_uri"],
        logo_uri=kept["logo_uri"],
        host=kept["host"],
        is_verified=kept["is_verified"],
    )


def named(client: Client, client_id: str) -> Client:
    """Return the same program under an id."""
    return replace(client, id=client_id)


def is_document_url(client_id: str) -> bool:
    """Return whether the id of a program is the URL of a document."""
    return client_id.startswith(DOCUMENT_PREFIX)


async def registered(source: Source, client_id: str) -> Client | None:
    """Return the program that is registered here under this id; None where there is none that may be used."""
    if not well_formed(client_id):
        return None
    row = await client_queries.usable(source, UUID(client_id))
    return None if row is None else _client(row)


def new_secret() -> str:
    """Return a secret, code or token of 256 bits: 43 characters of base64url."""
    return secrets.token_urlsafe(32)


def hashed(secret: str) -> bytes:
    """Return the stored hash of a random secret (SEC-01)."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()


def _client(row: UsableClient) -> Client:
    return Client(
        id=str(row.id),
        name=row.name,
        redirect_uris=tuple(row.redirect_uris),
        grant_types=tuple(row.grant_types),
        auth_method=row.token_endpoint_auth_method,
        scopes=tuple(row.scopes),
        client_uri=row.client_uri,
        logo_uri=row.logo_uri,
        host=None,
        is_verified=row.is_verified,
        secret_hash=row.secret_hash,
    )
