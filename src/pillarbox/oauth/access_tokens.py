"""Access tokens: signed claims that say which person lets which program act in which team (oauth.md 6; RFC
9068). Whether the grant behind one is still live is another question.
"""

from __future__ import annotations

import json
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from uuid import UUID

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256

from pillarbox.oauth.keys import SigningKeys, TokenSigningKey

LIFETIME: Final = timedelta(seconds=900)
ALGORITHM: Final = "ES256"
TYPE: Final = "at+jwt"
TYPES: Final = frozenset({"at+jwt", "application/at+jwt"})
LONGEST: Final = 8192
HALF: Final = 32
JTI_BYTES: Final = 16

ES256: Final = ec.ECDSA(SHA256())


@dataclass(frozen=True, slots=True)
class AccessToken:
    """The claims of a token whose signature holds."""

    person_id: UUID
    client_id: str
    scopes: tuple[str, ...]
    team_id: UUID
    grant_id: UUID
    issued_at: datetime
    expires_at: datetime
    jti: str


async def issue(
    keys: SigningKeys,
    now: datetime,
    *,
    issuer: str,
    person_id: UUID,
    client_id: str,
    scopes: Sequence[str],
    team_id: UUID,
    grant_id: UUID,
) -> str:
    """Return a token that is good for `LIFETIME` from `now`. Not for use in transactions (`keys.signing`)."""
    return signed(
        await keys.signing(),
        now,
        issuer=issuer,
        person_id=person_id,
        client_id=client_id,
        scopes=scopes,
        team_id=team_id,
        grant_id=grant_id,
    )


def signed(
    key: TokenSigningKey,
    instant: datetime,
    *,
    issuer: str,
    person_id: UUID,
    client_id: str,
    scopes: Sequence[str],
    team_id: UUID,
    grant_id: UUID,
) -> str:
    """Return a token that is good for `LIFETIME` from `instant`, signed with this key."""
    issued = int(instant.timestamp())
    head = {"alg": ALGORITHM, "typ": TYPE, "kid": key.kid}
    claims = {
        "iss": issuer,
        "aud": issuer,
        "sub": str(person_id),
        "client_id": client_id,
        "scope": " ".join(scopes),
        "iat": issued,
        "exp": issued + int(LIFETIME.total_seconds()),
        "jti": _text(secrets.token_bytes(JTI_BYTES)),
        "team_id": str(team_id),
        "grant_id": str(grant_id),
    }
    text = f"{_part(head)}.{_part(claims)}"
    assert key.private is not None, "the key that signs has its private half"
    first, second = decode_dss_signature(key.private.sign(text.encode("ascii"), ES256))
    return f"{text}.{_text(first.to_bytes(HALF, 'big') + second.to_bytes(HALF, 'big'))}"


async def verify(keys: SigningKeys, token: str, now: datetime, *, issuer: str) -> AccessToken | None:
    """Return the claims of a token of ours that is good at that time; None for anything else.

    Only ES256 counts, only the type of access tokens, and only keys of our own list: what the head of a token
    says about where its key is to be found is never read.
    """
    if len(token) > LONGEST or not token.isascii() or token.count(".") != 2:
        return None
    text, _, signature = token.rpartition(".")
    head_part, _, claims_part = text.partition(".")
    head, raw = _object(head_part), _raw(signature)
    if head is None or raw is None or len(raw) != 2 * HALF:
        return None
    if head.get("alg") != ALGORITHM or not _is_type(head.get("typ")) or "crit" in head:
        return None
    kid = head.get("kid")
    key = await keys.verifying(kid) if isinstance(kid, str) else None
    if key is None:
        return None
    try:
        der = encode_dss_signature(int.from_bytes(raw[:HALF], "big"), int.from_bytes(raw[HALF:], "big"))
        key.verify(der, text.encode("ascii"), ES256)
    except InvalidSignature:
        return None
    claims = _object(claims_part)
    return None if claims is None else _read(claims, now, issuer)


def _is_type(kind: object) -> bool:
    return isinstance(kind, str) and kind.lower() in TYPES


def _read(claims: dict[str, Any], instant: datetime, issuer: str) -> AccessToken | None:
    """Return the claims that we have signed; other kinds of tokens, and other issuers with our keys,
    are refused."""
    try:
        if claims["iss"] != issuer or claims["aud"] != issuer:
            return None
        found = AccessToken(
            person_id=UUID(claims["sub"]),
            client_id=str(claims["client_id"]),
            scopes=tuple(str(claims["scope"]).split()),
            team_id=UUID(claims["team_id"]),
            grant_id=UUID(claims["grant_id"]),
            issued_at=datetime.fromtimestamp(int(claims["iat"]), UTC),
            expires_at=datetime.fromtimestamp(int(claims["exp"]), UTC),
            jti=str(claims["jti"]),
        )
    except (KeyError, ValueError, TypeError, AttributeError, OverflowError, OSError):
        return None
    return found if instant < found.expires_at else None


def _part(value: dict[str, Any]) -> str:
    return _text(json.dumps(value, separators=(",", ":")).encode())


def _text(raw: bytes) -> str:
    return urlsafe_b64encode(raw).rstrip(b"=").decode("ascii")


def _raw(text: str) -> bytes | None:
    """Return the octets of base64url in its one spelling."""
    try:
        raw = urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except ValueError:
        return None
    return raw if _text(raw) == text else None


def _object(text: str) -> dict[str, Any] | None:
    raw = _raw(text)
    try:
        found = None if raw is None else json.loads(raw)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
