"""ID tokens: what is believed of one (OpenID Connect Core 1.0, 3.1.3.7; RFC 8725).

The signature must be by a public key of the provider, with an algorithm that its discovery names and that
fits the key. What a token says of its own key (`jwk`, `jku`, `x5u`) is never looked at.
"""

from __future__ import annotations

import hashlib
import hmac
import warnings
from base64 import urlsafe_b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from joserfc import jws, jwt
from joserfc.errors import JoseError
from joserfc.jwk import ECKey, OKPKey, RSAKey
from joserfc.jws import JWSRegistry

from pillarbox.people.openid.failures import OpenIdFailure, OpenIdReason

PublicKey = RSAKey | ECKey | OKPKey

MOST_KEYS: Final = 100
LONGEST_TOKEN: Final = 64 * 1024
LONGEST_SUBJECT: Final = 255
LONGEST_NAME: Final = 300
SMALLEST_RSA: Final = 2048
LATEST: Final = 1e12
"""Seconds of a claim of time beyond which it is none."""

LEEWAY: Final = 60.0
"""Seconds by which the clocks of the provider and of this machine may differ."""

CURVES: Final = {
    "ES256": "P-256",
    "ES384": "P-384",
    "ES512": "P-521",
    "EdDSA": "Ed25519",
    "Ed25519": "Ed25519",
}
TYPES: Final[Mapping[str, type[PublicKey]]] = {"RSA": RSAKey, "EC": ECKey, "OKP": OKPKey}
PRIVATE: Final = frozenset({"d", "p", "q", "dp", "dq", "qi", "oth", "k"})
WRONG: Final = (JoseError, ValueError, TypeError, KeyError, AttributeError, RecursionError)
"""The exceptions of the library at a token or key that is not right."""


class KeyUnknown(Exception):  # noqa: N818 - the keys may have been changed since they were fetched
    """No key of the provider, as far as it is known, can have signed the token."""


@dataclass(frozen=True, slots=True)
class ProviderKey:
    """A public key of the provider. `curve` is "" for RSA."""

    id: str | None
    algorithm: str | None
    curve: str
    key: PublicKey

    def fits(self, algorithm: str, key_id: str | None) -> bool:
        """Return whether the key may have made a signature of this algorithm and key id."""
        if key_id is not None and self.id != key_id:
            return False
        if self.algorithm not in (None, algorithm):
            return False
        return self.curve == CURVES.get(algorithm, "")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedToken:
    """The facts that a token must agree with."""

    issuer: str
    client_id: str
    nonce: str
    algorithms: Sequence[str]
    access_token: str | None
    now: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class SubjectClaims:
    """The claims of a provider about somebody. `email` counts only where `is_verified`."""

    subject: str
    email: str | None
    is_verified: bool
    name: str | None
    authenticated_at: float | None


def provider_keys(documents: Iterable[Mapping[str, Any]]) -> list[ProviderKey]:
    """Return the keys that may have signed a token; others are passed over."""
    found = []
    for document in list(documents)[:MOST_KEYS]:
        key = _key(document)
        if key is not None:
            found.append(key)
    return found


def _key(document: Mapping[str, Any]) -> ProviderKey | None:
    kind, use, operations = document.get("kty"), document.get("use"), document.get("key_ops")
    if not isinstance(kind, str) or kind not in TYPES or use not in (None, "sig"):
        return None
    if operations is not None and (not isinstance(operations, list) or "verify" not in operations):
        return None
    plain = {name: value for name, value in document.items() if name not in PRIVATE}
    try:
        key = TYPES[kind].import_key(plain)
        octets = 0 if not isinstance(key, RSAKey) else key.public_key.key_size
    except WRONG:
        return None
    if isinstance(key, RSAKey) and octets < SMALLEST_RSA:
        return None
    return ProviderKey(_text(plain, "kid"), _text(plain, "alg"), _text(plain, "crv") or "", key)


def checked_claims(token: str, keys: Iterable[ProviderKey], expected: ExpectedToken) -> SubjectClaims:
    """Return what the provider says in a token that is right; raises OpenIdFailure, and KeyUnknown where
    newer keys of the provider may help."""
    claims, algorithm = _signed_claims(token, keys, expected.algorithms)
    _check_parties(claims, expected)
    if "at_hash" in claims and not _is_hash_of(claims["at_hash"], expected.access_token, algorithm):
        raise _wrong("at_hash")
    _check_times(claims, expected.now)
    nonce = claims.get("nonce")
    if not isinstance(nonce, str) or not hmac.compare_digest(nonce.encode(), expected.nonce.encode()):
        raise _wrong("nonce")
    return subject_claims(claims)


def subject_claims(claims: Mapping[str, Any]) -> SubjectClaims:
    """Return what claims say of a subject; raises OpenIdFailure where they name none."""
    subject = _text(claims, "sub")
    if not subject or len(subject) > LONGEST_SUBJECT or not subject.isprintable():
        raise _wrong("sub")
    name = _text(claims, "name")
    return SubjectClaims(
        subject=subject,
        email=_text(claims, "email"),
        is_verified=claims.get("email_verified") is True,
        name=None if name is None else name[:LONGEST_NAME],
        authenticated_at=_number(claims, "auth_time"),
    )


def _signed_claims(
    token: str, keys: Iterable[ProviderKey], algorithms: Sequence[str]
) -> tuple[Mapping[str, Any], str]:
    """Return the claims of a token with a right signature, and the algorithm of that."""
    header = _header(token)
    algorithm, key_id = header.get("alg"), header.get("kid")
    if not isinstance(algorithm, str) or algorithm not in algorithms:
        raise _wrong("alg")
    if "crit" in header or "b64" in header or not isinstance(key_id, str | None):
        raise _wrong("header")
    fitting = [key for key in keys if key.fits(algorithm, key_id)]
    registry = JWSRegistry(algorithms=[algorithm], strict_check_header=False)
    for key in fitting:
        try:
            with warnings.catch_warnings():
                # `EdDSA` is the name that providers use; the library prefers a newer one.
                warnings.simplefilter("ignore")
                return jwt.decode(token, key.key, registry=registry).claims, algorithm
        except WRONG:
            continue
    if not fitting or key_id is None:
        raise KeyUnknown
    raise _wrong("signature")


def _header(token: str) -> Mapping[str, Any]:
    if len(token) > LONGEST_TOKEN or token.count(".") != 2:
        raise _wrong("form")
    try:
        return jws.extract_compact(token.encode("ascii")).headers()
    except WRONG:
        raise _wrong("form") from None


def _check_parties(claims: Mapping[str, Any], expected: ExpectedToken) -> None:
    """Check who made the token for whom."""
    audience = claims.get("aud")
    audiences = audience if isinstance(audience, list) else [audience]
    if claims.get("iss") != expected.issuer:
        raise _wrong("iss")
    if expected.client_id not in audiences:
        raise _wrong("aud")
    if claims.get("azp", None if len(audiences) > 1 else expected.client_id) != expected.client_id:
        raise _wrong("azp")


def _is_hash_of(given: Any, access_token: str | None, algorithm: str) -> bool:
    """Return whether the token came with this access token (3.1.3.8)."""
    if access_token is None or not isinstance(given, str):
        return False
    name = f"sha{algorithm[2:]}" if algorithm[2:] in ("256", "384", "512") else "sha512"
    digest = hashlib.new(name, access_token.encode()).digest()
    half = urlsafe_b64encode(digest[: len(digest) // 2]).rstrip(b"=")
    return hmac.compare_digest(half, given.rstrip("=").encode())


def _check_times(claims: Mapping[str, Any], now: datetime) -> None:
    instant = now.timestamp()
    expires, issued = _number(claims, "exp"), _number(claims, "iat")
    if expires is None or instant >= expires + LEEWAY:
        raise _wrong("exp")
    if issued is None or issued > instant + LEEWAY:
        raise _wrong("iat")
    if "nbf" in claims:
        begins = _number(claims, "nbf")
        if begins is None or begins > instant + LEEWAY:
            raise _wrong("nbf")


def _text(claims: Mapping[str, Any], name: str) -> str | None:
    found = claims.get(name)
    return found if isinstance(found, str) else None


def _number(claims: Mapping[str, Any], name: str) -> float | None:
    found = claims.get(name)
    if isinstance(found, bool) or not isinstance(found, int | float) or not abs(found) <= LATEST:
        return None
    return float(found)


def _wrong(what: str) -> OpenIdFailure:
    return OpenIdFailure(OpenIdReason.TOKEN, what)
