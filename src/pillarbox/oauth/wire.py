"""Shapes of the OAuth endpoints; field order is the contract's."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Final, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from pillarbox.kernel.http.schemas import RequiredParameter, one_of, shown_as
from pillarbox.kernel.wire.fields import read_by
from pillarbox.oauth.authorization import LONGEST_STATE
from pillarbox.oauth.clients import client_metadata, redirects
from pillarbox.oauth.clients.client_metadata import LONGEST_NAME, LONGEST_URL
from pillarbox.oauth.clients.clients import GRANT_TYPES, METHODS, NONE, Client
from pillarbox.oauth.clients.registration import NewClient, scopes_of
from pillarbox.oauth.failures import InvalidRequest
from pillarbox.oauth.keys import PublicKey
from pillarbox.oauth.scopes import SUPPORTED
from pillarbox.oauth.tokens import IssuedTokens

SCOPES: Final = f"Of {' and '.join(SUPPORTED)}, with a blank between them."
RedirectUri = Annotated[str, Meta(min_length=1, max_length=redirects.LONGEST)]


class ServerMetadata(Struct, kw_only=True):
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


class ResourceMetadata(Struct, kw_only=True):
    """RFC 9728."""

    resource: str
    authorization_servers: tuple[str, ...]
    bearer_methods_supported: tuple[str, ...]
    scopes_supported: tuple[str, ...]


class SigningKeyShown(Struct, kw_only=True):
    kty: Literal["EC"]
    crv: Literal["P-256"]
    x: str
    y: str
    use: Literal["sig"]
    alg: Literal["ES256"]
    kid: str


class KeyList(Struct, kw_only=True):
    keys: list[SigningKeyShown]


def _name(value: object, field: str) -> str:
    return client_metadata.name_of(client_metadata.needed(value, field), field)


def _text(value: object, field: str) -> str:
    if not isinstance(value, str):
        raise InvalidRequest(f"{field}: must be a text")
    return value


def _method(value: object, field: str) -> str:
    for method in METHODS:
        if value == method:
            return method
    raise InvalidRequest(f"{field}: must be one of {', '.join(METHODS)}")


def _client_uri(value: object, field: str) -> str:
    return client_metadata.url_of(value, field, "http", "https")


def _logo_uri(value: object, field: str) -> str:
    return client_metadata.url_of(value, field, "https")


GivenRedirects = Annotated[list[RedirectUri], Meta(min_length=1, max_length=redirects.MOST)]
GivenGrantTypes = list[Literal["authorization_code", "refresh_token"]]
GivenResponseTypes = Annotated[list[Literal["code"]], Meta(min_length=1)]
GivenMethod = Literal["none", "client_secret_basic", "client_secret_post"]
Url = Annotated[str, Meta(max_length=LONGEST_URL)]
Texts = tuple[str, ...]
GrantTypes = Annotated[Texts, shown_as(GivenGrantTypes), read_by(client_metadata.grant_types_of)]
ResponseTypes = Annotated[Texts, shown_as(GivenResponseTypes), read_by(client_metadata.response_types_of)]


class ClientRegistration(Struct, kw_only=True):
    """RFC 7591. Members that are not listed are ignored."""

    client_name: Annotated[str, Meta(max_length=LONGEST_NAME), read_by(_name, absent=True)]
    redirect_uris: Annotated[
        Texts, shown_as(GivenRedirects), read_by(client_metadata.listed_redirects, absent=True)
    ]
    grant_types: GrantTypes | None = None
    response_types: ResponseTypes | None = None
    scope: Annotated[str, Meta(description=SCOPES), read_by(_text)] | None = None
    token_endpoint_auth_method: Annotated[str, shown_as(GivenMethod), read_by(_method)] | None = None
    client_uri: Annotated[Url, read_by(_client_uri)] | None = None
    logo_uri: Annotated[Url, read_by(_logo_uri)] | None = None

    def client(self) -> Client:
        """Return the program, without an id; raises where a redirect URI or a scope cannot be had."""
        client_metadata.refuse_redirects(self.redirect_uris)
        return Client(
            id="",
            name=self.client_name,
            redirect_uris=self.redirect_uris,
            grant_types=self.grant_types or GRANT_TYPES,
            auth_method=self.token_endpoint_auth_method or NONE,
            scopes=scopes_of(self.scope),
            client_uri=self.client_uri,
            logo_uri=self.logo_uri,
        )


def _or_empty(value: str | None, _: str) -> str:
    return value or ""


GivenGrantType = Literal["authorization_code", "refresh_token"]


class TokenRequest(Struct, kw_only=True):
    """`authorization_code` needs `code`, `redirect_uri` and `code_verifier`; `refresh_token` needs
    `refresh_token`. A program that does not authenticate by the Authorization header names itself by
    `client_id`. An empty value is as none."""

    grant_type: Annotated[str, shown_as(GivenGrantType), read_by(_or_empty, absent=True)]
    code: str | None = None
    redirect_uri: str | None = None
    code_verifier: str | None = None
    refresh_token: str | None = None
    scope: str | None = None
    client_id: str | None = None
    client_secret: str | None = None
    resource: str | None = None


class RevocationRequest(Struct, kw_only=True):
    """RFC 7009. Access tokens cannot be revoked; their grant ends with its refresh token."""

    token: Annotated[str, read_by(_or_empty, absent=True)]
    token_type_hint: str | None = None
    client_id: str | None = None
    client_secret: str | None = None


AUTHORIZATION_PARAMETERS: Final = {
    "client_id": RequiredParameter(str),
    "redirect_uri": RequiredParameter(RedirectUri),
    "response_type": RequiredParameter(Literal["code"]),
    "code_challenge": RequiredParameter(Annotated[str, Meta(pattern="^[A-Za-z0-9_-]{43}$")]),
    "code_challenge_method": RequiredParameter(Literal["S256"]),
    "scope": Annotated[str, Meta(description=SCOPES)],
    "state": Annotated[str, Meta(max_length=LONGEST_STATE)],
    "response_mode": Annotated[str, one_of(("query",))],
    "resource": str,
}
"""RFC 6749, 4.1.1, with PKCE (RFC 7636, 4.3)."""


class RegisteredClient(Struct, kw_only=True):
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


class TokenAnswer(Struct, kw_only=True):
    access_token: str
    token_type: Literal["Bearer"]
    expires_in: int
    refresh_token: str | UnsetType
    scope: str


def server_metadata(issuer: str, *, documents: bool) -> ServerMetadata:
    """Return the metadata that programs read first (oauth.md 2)."""
    methods = ("none", "client_secret_basic", "client_secret_post")
    return ServerMetadata(
        issuer=issuer,
        authorization_endpoint=f"{issuer}/oauth/authorize",
        token_endpoint=f"{issuer}/oauth/token",
        jwks_uri=f"{issuer}/.well-known/jwks.json",
        registration_endpoint=f"{issuer}/oauth/register",
        revocation_endpoint=f"{issuer}/oauth/revoke",
        scopes_supported=SUPPORTED,
        response_types_supported=("code",),
        response_modes_supported=("query",),
        grant_types_supported=("authorization_code", "refresh_token"),
        token_endpoint_auth_methods_supported=methods,
        code_challenge_methods_supported=("S256",),
        revocation_endpoint_auth_methods_supported=methods,
        client_id_metadata_document_supported=documents,
        authorization_response_iss_parameter_supported=True,
    )


def resource_metadata(issuer: str, path: str = "") -> ResourceMetadata:
    """Return the description of the API, or of what is below a path of it."""
    return ResourceMetadata(
        resource=issuer + path,
        authorization_servers=(issuer,),
        bearer_methods_supported=("header",),
        scopes_supported=SUPPORTED,
    )


def key_list(keys: Iterable[PublicKey]) -> KeyList:
    return KeyList(
        keys=[
            SigningKeyShown(
                kty="EC", crv="P-256", x=key["x"], y=key["y"], use="sig", alg="ES256", kid=key["kid"]
            )
            for key in keys
        ]
    )


def registered(new_client: NewClient, issued_at: int) -> RegisteredClient:
    """Return the answer to a registration; a secret is shown here and never again."""
    client = new_client.client
    return RegisteredClient(
        client_id=client.id,
        client_id_issued_at=issued_at,
        client_name=client.name,
        redirect_uris=client.redirect_uris,
        grant_types=client.grant_types,
        response_types=("code",),
        token_endpoint_auth_method=client.auth_method,
        scope=" ".join(client.scopes),
        client_uri=client.client_uri or UNSET,
        logo_uri=client.logo_uri or UNSET,
        client_secret=new_client.secret or UNSET,
        client_secret_expires_at=UNSET if new_client.secret is None else 0,
    )


def token_answer(issued: IssuedTokens, seconds: int) -> TokenAnswer:
    refresh_token = issued.refresh_token or UNSET
    return TokenAnswer(
        access_token=issued.access_token,
        token_type="Bearer",  # noqa: S106 - a kind of token
        expires_in=seconds,
        refresh_token=refresh_token,
        scope=" ".join(issued.scopes),
    )
