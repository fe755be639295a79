"""Signed tokens for links that carry no credential: files, shared emails, unsubscribe, capture page.

A token is base64url of a payload and its HMAC-SHA256, cut to 128 bits (RFC 2104, 5). The payload names the
key, the kind and the expiry, then what the link stands for. Nothing is stored: everybody who has a token can
use it until it expires, and only the holder of the key can make, change or extend one. Keys are derived per
kind, so a token of one kind is noise to every other.

    version 1 | expiry, ms since 1970, 0 = never: 6 | key id: n+1 | kind: n+1 | fields: n+3 each | MAC 16

A field is a UUID, bytes or text, and comes back as the same type.
"""

from __future__ import annotations

import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from datetime import datetime, timedelta
from uuid import UUID

from pillarbox.kernel.clock import Clock
from pillarbox.kernel.ids import EPOCH
from pillarbox.kernel.security.secrets import KeyMissing, KeyRing

Field = UUID | bytes | str
Fields = tuple[Field, ...]

VERSION = 1
MAC_BYTES = 16
LONGEST = 4096
MILLISECOND = timedelta(milliseconds=1)


class TokenError(Exception):
    """The token cannot be honoured."""


class TokenInvalid(TokenError):  # noqa: N818
    """Not a token of ours, not of this kind, or changed on the way."""


class TokenExpired(TokenError):  # noqa: N818
    """A valid token that has expired."""


class Signer:
    """Makes and reads tokens. Tokens of an older key stay good as long as the ring has that key."""

    __slots__ = ("_clock", "_ring")

    def __init__(self, ring: KeyRing, clock: Clock) -> None:
        self._ring = ring
        self._clock = clock

    def issue(self, kind: str, fields: Fields, ttl: timedelta | None) -> str:
        """Return a token that holds for `ttl` from now, or for ever."""
        return self.issue_until(kind, fields, None if ttl is None else self._clock.now() + ttl)

    def issue_until(self, kind: str, fields: Fields, expires_at: datetime | None) -> str:
        """Return a token that holds before `expires_at` (whole milliseconds, as the wire shows it)."""
        expiry = 0 if expires_at is None else (expires_at - EPOCH) // MILLISECOND
        payload = b"".join(
            (
                bytes((VERSION,)),
                expiry.to_bytes(6, "big"),
                _short(self._ring.active_id),
                _short(kind),
                *map(_packed, fields),
            )
        )
        mac = _mac(self._ring.mac_key(_purpose(kind)), payload)
        token = urlsafe_b64encode(payload + mac).rstrip(b"=").decode("ascii")
        if len(token) > LONGEST:
            raise ValueError("the fields are too long for a token")
        return token

    def read(self, kind: str, token: str) -> Fields:
        """Return the fields of a token of this kind; raise TokenInvalid or TokenExpired."""
        raw = _decoded(token)
        payload, mac = raw[:-MAC_BYTES], raw[-MAC_BYTES:]
        expiry, key_id, fields_at = _head(payload, kind)
        try:
            key = self._ring.mac_key(_purpose(kind), key_id)
        except KeyMissing:
            raise TokenInvalid from None
        if not hmac.compare_digest(_mac(key, payload), mac):
            raise TokenInvalid
        if expiry and self._clock.now() >= EPOCH + expiry * MILLISECOND:
            raise TokenExpired
        return _unpacked(payload, fields_at)


def _purpose(kind: str) -> str:
    return f"token {kind}"


def _mac(key: bytes, payload: bytes) -> bytes:
    return hmac.digest(key, payload, "sha256")[:MAC_BYTES]


def _short(text: str) -> bytes:
    raw = text.encode("ascii")
    return bytes((len(raw),)) + raw


def _decoded(token: str) -> bytes:
    """Return the bytes of a token in its one canonical spelling: no padding, no stray bits, no
    other letters."""
    if len(token) > LONGEST or not token.isascii():
        raise TokenInvalid
    try:
        raw = urlsafe_b64decode(token + "=" * (-len(token) % 4))
    except ValueError:
        raise TokenInvalid from None
    if urlsafe_b64encode(raw).rstrip(b"=").decode("ascii") != token:
        raise TokenInvalid
    return raw


def _head(payload: bytes, kind: str) -> tuple[int, str, int]:
    """Return the expiry, the key id and where the fields start; not yet to be trusted."""
    if len(payload) < 9 or payload[0] != VERSION:
        raise TokenInvalid
    kind_at = 8 + payload[7]
    fields_at = kind_at + 1 + len(kind)
    if payload[kind_at:fields_at] != _short(kind):
        raise TokenInvalid
    return int.from_bytes(payload[1:7], "big"), payload[8:kind_at].decode("latin-1"), fields_at


def _packed(field: Field) -> bytes:
    if isinstance(field, UUID):
        mark, raw = b"u", field.bytes
    elif isinstance(field, str):
        mark, raw = b"s", field.encode()
    else:
        mark, raw = b"b", field
    return mark + len(raw).to_bytes(2, "big") + raw


def _unpacked(payload: bytes, index: int) -> Fields:
    """Return the fields of a payload whose MAC holds, so it is one that `issue` wrote."""
    fields: list[Field] = []
    while index < len(payload):
        mark, start = payload[index : index + 1], index + 3
        index = start + int.from_bytes(payload[index + 1 : start], "big")
        raw = payload[start:index]
        fields.append(UUID(bytes=raw) if mark == b"u" else raw.decode() if mark == b"s" else raw)
    return tuple(fields)
