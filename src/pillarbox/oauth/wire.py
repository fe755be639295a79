"""Shapes of the OAuth endpoints; field order is the contract's."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from msgspec import UNSET, Struct, UnsetType

from pillarbox.oauth.clients.registration import NewClient
from pillarbox.oauth.keys import PublicKey
from pillarbox.oauth.scopes import SUPPORTED
from pillarbox.oauth.tokens import IssuedTokens


class ServerMetadata(Struct):
    """RFC 8414."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    registration_endpoint: str
    revocation_endpoint: str
    scopes_supported: tuple[str, ...]
    response_types_supported: tuple[str, ...]
    response_modes_supported: tuple[str, ...]
    grant_types_supported: tuple[str, ...]
    token_endpoint_auth_methods_supported: tuple[str, ...]
    code_challenge_methods_supported: tuple[str, ...]
    revocation_endpoint_auth_methods_supported: tuple[str, ...]
    client_id_metadata_document_supported: bool
    authorization_response_iss_parameter_supported: bool


class ResourceMetadata(Struct):
    """RFC 9728."""

    resource: str
    authorization_servers: tuple[str, ...]
    bearer_methods_supported: tuple[str, ...]
    scopes_supported: tuple[str, ...]


class SigningKeyShown(Struct):
    kty: Literal["EC"]
    crv: Literal["P-256"]
    x: str
    y: str
    use: Literal["sig"]
    alg: Literal["ES256"]
    kid: str


class KeyList(Struct):
    keys: list[SigningKeyShown]


class RegisteredClient(Struct):
    client_id: str
    client_id_issued_at: int
    client_name: str
    redirect_uris: tuple[str, ...]
    grant_types: tuple[str, ...]
    response_types: tuple[str, ...]
    token_endpoint_auth_method: str
    scope: str
    client_uri: str | UnsetType = UNSET
    logo_uri: str | UnsetType = UNSET
    client_secret: str | UnsetType = UNSET
    client_secret_expires_at: int | UnsetType = UNSET


class TokenAnswer(Struct):
    access_token: str
    token_type: Literal["Bearer"]
    expires_in: int
    refresh_token: str | UnsetType
    scope: str


def server_metadata(issuer: str, *, documents: bool) -> ServerMetadata:
    """What programs find out first (oauth.md 2)."""
    methods = ("none", "client_secret_basic", "client_secret_post")
    return ServerMetadata(
        issuer,
        f"{issuer}/oauth/authorize",
        f"{issuer}/oauth/token",
        f"{issuer}/.well-known/jwks.json",
        f"{issuer}/oauth/register",
        f"{issuer}/oauth/revoke",
        SUPPORTED,
        ("code",),
        ("query",),
        ("authorization_code", "refresh_token"),
        methods,
        ("S256",),
        methods,
        documents,
        True,
    )


def resource_metadata(issuer: str) -> ResourceMetadata:
    return ResourceMetadata(issuer, (issuer,), ("header",), SUPPORTED)


def key_list(keys: Iterable[PublicKey]) -> KeyList:
    return KeyList(
        [SigningKeyShown("EC", "P-256", key["x"], key["y"], "sig", "ES256", key["kid"]) for key in keys]
    )


def registered(new_client: NewClient, issued_at: int) -> RegisteredClient:
    """The answer to a registration; a secret is shown here and never again."""
    client = new_client.client
    return RegisteredClient(
        client.id,
        issued_at,
        client.name,
        client.redirect_uris,
        client.grant_types,
        ("code",),
        client.auth_method,
        " ".join(client.scopes),
        client.client_uri or UNSET,
        client.logo_uri or UNSET,
        new_client.secret or UNSET,
        UNSET if new_client.secret is None else 0,
    )


def token_answer(issued: IssuedTokens, seconds: int) -> TokenAnswer:
    refresh_token = issued.refresh_token or UNSET
    return TokenAnswer(issued.access_token, "Bearer", seconds, refresh_token, " ".join(issued.scopes))
