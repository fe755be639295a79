"""Which keys of a provider may have signed an ID token, as functions."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from joserfc import jwt
from joserfc.jwk import ECKey, OctKey, OKPKey, RSAKey

from pillarbox.people.openid.failures import OpenIdFailure
from pillarbox.people.openid.id_tokens import (
    ExpectedToken,
    KeyUnknown,
    SubjectClaims,
    checked_claims,
    provider_keys,
)
from pillarbox.people.openid.provider_document import ALGORITHMS

NOW = datetime(2026, 11, 27, 12, tzinfo=UTC)
RSA = RSAKey.generate_key(2048, {"kid": "rsa"})
KEYS: dict[str, Any] = {
    "RS256": RSA,
    "RS384": RSA,
    "RS512": RSA,
    "PS256": RSA,
    "PS384": RSA,
    "PS512": RSA,
    "ES256": ECKey.generate_key("P-256", {"kid": "p256"}),
    "ES384": ECKey.generate_key("P-384", {"kid": "p384"}),
    "ES512": ECKey.generate_key("P-521", {"kid": "p521"}),
    "EdDSA": OKPKey.generate_key("Ed25519", {"kid": "ed"}),
    "Ed25519": OKPKey.generate_key("Ed25519", {"kid": "ed"}),
}


def claims(**changed: Any) -> dict[str, Any]:
    instant = int(NOW.timestamp())
    right = {"iss": "https://id.quay.example", "aud": "harbor", "sub": "ada", "nonce": "n", "iat": instant}
    return {**right, "exp": instant + 60, **changed}


def read(algorithm: str, key: Any, document: dict[str, Any], *, kid: str | None = None) -> SubjectClaims:
    """What is believed of a token that the key has signed, where the provider shows the document."""
    header = {"alg": algorithm, **({} if kid is None else {"kid": kid})}
    token = jwt.encode(header, claims(), key, [algorithm])
    expected = ExpectedToken(
        issuer="https://id.quay.example",
        client_id="harbor",
        nonce="n",
        algorithms=ALGORITHMS,
        access_token=None,
        now=NOW,
    )
    return checked_claims(token, provider_keys([document]), expected)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.filterwarnings("ignore::joserfc.errors.SecurityWarning")
def test_each_algorithm_of_a_public_key_counts(algorithm: str) -> None:
    """OA-13."""
    key = KEYS[algorithm]
    assert read(algorithm, key, key.as_dict(private=False), kid=key.kid).subject == "ada"
    assert read(algorithm, key, key.as_dict(private=False)).subject == "ada"


@pytest.mark.parametrize(
    "changed",
    [
        {"alg": "RS512"},
        {"use": "enc"},
        {"key_ops": ["encrypt"]},
        {"key_ops": "verify"},
        {"kid": "another"},
        {"kty": "EC"},
        {"kty": ["RSA"]},
        {"n": "AQAB"},
        {"n": 7},
    ],
)
def test_a_key_for_something_else_signs_no_token(changed: dict[str, Any]) -> None:
    """OA-13."""
    with pytest.raises(KeyUnknown):
        read("RS256", RSA, {**RSA.as_dict(private=False), **changed}, kid="rsa")


@pytest.mark.filterwarnings("ignore::joserfc.errors.SecurityWarning")
def test_small_and_secret_keys_sign_no_token() -> None:
    """OA-13."""
    small = RSAKey.generate_key(1024, {"kid": "small"}, auto_kid=False)
    secret = OctKey.generate_key(256, {"kid": "secret"})
    assert provider_keys([small.as_dict(private=False), secret.as_dict(private=True)]) == []
    assert len(provider_keys([RSA.as_dict(private=True)] * 500)) == 100


@pytest.mark.parametrize("token", ["", "a.b", "a.b.c.d.e", "a.b.c", "é.b.c", "." * 2, "a" * 70_000])
def test_what_is_no_token_is_refused(token: str) -> None:
    expected = ExpectedToken(
        issuer="i", client_id="c", nonce="n", algorithms=ALGORITHMS, access_token=None, now=NOW
    )
    with pytest.raises(OpenIdFailure):
        checked_claims(token, provider_keys([RSA.as_dict(private=False)]), expected)
