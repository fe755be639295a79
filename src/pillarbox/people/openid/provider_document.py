"""The documents of a provider, read strictly: discovery, keys, tokens, facts about a user.

Endpoints must be HTTPS, but for a provider on this machine. The issuer of the discovery document must be the
configured one, character by character (OpenID Connect Discovery 1.0, section 4.3).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import msgspec

from pillarbox.kernel.network.web_address import BadUrl, parse_url
from pillarbox.people.openid.failures import OpenIdFailure, OpenIdReason
from pillarbox.people.settings import is_this_machine

T = TypeVar("T")

ALGORITHMS: Final = (
    *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    *("ES256", "ES384", "ES512", "EdDSA", "Ed25519"),
)
"""The algorithms of signatures that may count: with a public key of the provider alone."""

BASIC: Final = "client_secret_basic"
POST: Final = "client_secret_post"


class DiscoveryDocument(msgspec.Struct):
    """The members of a discovery document that are read."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    userinfo_endpoint: str | None = None
    id_token_signing_alg_values_supported: list[str] | None = None
    token_endpoint_auth_methods_supported: list[str] | None = None
    authorization_response_iss_parameter_supported: bool | None = None


class ProviderTokens(msgspec.Struct):
    """The members of an answer of the token endpoint that are read."""

    id_token: str
    token_type: str
    access_token: str | None = None


class KeyDocument(msgspec.Struct):
    """A JWK Set (RFC 7517, section 5)."""

    keys: list[dict[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderMetadata:
    """Where and how a provider is asked. `is_secret_in_form`: its token endpoint takes the secret in the
    form alone. `names_itself`: its answers always carry `iss` (RFC 9207)."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    userinfo_endpoint: str | None
    algorithms: tuple[str, ...]
    is_secret_in_form: bool
    names_itself: bool


def read_document(octets: bytes, shape: type[T], name: str) -> T:
    """Return a JSON document of the provider; raises OpenIdFailure where it is none of this shape."""
    try:
        return msgspec.json.decode(octets, type=shape)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as wrong:
        raise OpenIdFailure(OpenIdReason.ANSWER, f"{name}: {wrong}") from None


def metadata_of(octets: bytes, issuer: str) -> ProviderMetadata:
    """Return what the discovery document of the issuer says; raises OpenIdFailure."""
    found = read_document(octets, DiscoveryDocument, "discovery")
    if found.issuer != issuer:
        raise OpenIdFailure(OpenIdReason.ANSWER, f"discovery: the issuer calls itself {found.issuer[:200]}")
    named = found.id_token_signing_alg_values_supported
    algorithms = tuple(name for name in ALGORITHMS if name in (["RS256"] if named is None else named))
    if not algorithms:
        raise OpenIdFailure(OpenIdReason.ANSWER, "discovery: no algorithm of ID tokens can be used")
    methods = found.token_endpoint_auth_methods_supported or [BASIC]
    if BASIC not in methods and POST not in methods:
        raise OpenIdFailure(OpenIdReason.ANSWER, "discovery: the client cannot prove itself by a secret")
    is_local = issuer.startswith("http:")
    userinfo = found.userinfo_endpoint
    return ProviderMetadata(
        issuer=issuer,
        authorization_endpoint=_endpoint(found.authorization_endpoint, is_local=is_local),
        token_endpoint=_endpoint(found.token_endpoint, is_local=is_local),
        jwks_uri=_endpoint(found.jwks_uri, is_local=is_local),
        userinfo_endpoint=None if userinfo is None else _endpoint(userinfo, is_local=is_local),
        algorithms=algorithms,
        is_secret_in_form=BASIC not in methods,
        names_itself=found.authorization_response_iss_parameter_supported is True,
    )


def _endpoint(text: str, *, is_local: bool) -> str:
    """Return an endpoint as it is requested: in ASCII, without a fragment."""
    try:
        parts = parse_url(text)
    except BadUrl:
        raise OpenIdFailure(OpenIdReason.ANSWER, "discovery: an endpoint is no URL") from None
    if parts.scheme != "https" and not (is_local and is_this_machine(parts.host)):
        raise OpenIdFailure(OpenIdReason.ANSWER, "discovery: an endpoint is not HTTPS")
    return str(parts)


def key_documents(octets: bytes) -> Sequence[dict[str, Any]]:
    """Return the keys of a JWK Set; raises OpenIdFailure."""
    return read_document(octets, KeyDocument, "keys").keys
