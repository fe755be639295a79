"""Secrets at rest and new secrets (architecture 2.12; SEC-01, SEC-04, SEC-08).

The key ring is text: `id:base64key[,id:base64key…]`, each key 32 bytes. The first key seals; every key
opens. To rotate, put a new key in front, seal again what `is_current` calls old, and drop the last key.

A sealed value is bound to its context (say `b"dkim_keys" + row id`): copied to another row it does not
open. It fails in one of two ways, and the caller can tell which: the key is not in the ring
(`KeyMissing`), or the bytes are not what was sealed for this context (`SealBroken`).
"""

from __future__ import annotations

import re
import secrets
from base64 import b64decode, b64encode
from collections.abc import Callable, Sequence
from hashlib import sha256

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from pillarbox.kernel.ids import base62

KEY_BYTES = 32
NONCE_BYTES = 12
TAG_BYTES = 16
SEAL_VERSION = 1
KEY_ID = re.compile(r"[A-Za-z0-9_-]{1,32}")
API_KEY = re.compile(r"re_[A-Za-z0-9]{8}_[A-Za-z0-9]{24}")


class KeyRingError(Exception):
    """A sealed value could not be opened."""


class KeyMissing(KeyRingError):  # noqa: N818
    """The value was sealed with a key that is not in the ring."""

    def __init__(self, key_id: str) -> None:
        super().__init__(f"The key ring has no key with the id {key_id!r}.")
        self.key_id = key_id


class SealBroken(KeyRingError):  # noqa: N818
    """The value is damaged, or it was sealed for another record."""

    def __init__(self) -> None:
        super().__init__("The sealed value is damaged or belongs to another record.")


class KeyRing:
    """The keys of this installation, the active one first. It never shows them."""

    __slots__ = ("_ciphers", "_derived", "_keys", "active_id")

    def __init__(self, keys: Sequence[tuple[str, bytes]]) -> None:
        if not keys:
            raise ValueError("The key ring holds no key.")
        self._keys = dict(keys)
        if len(self._keys) != len(keys):
            raise ValueError("The key ring names a key id twice.")
        if any(len(key) != KEY_BYTES for key in self._keys.values()):
            raise ValueError("Every key of the key ring must have 32 bytes.")
        self.active_id = keys[0][0]
        self._ciphers = {key_id: AESGCM(key) for key_id, key in keys}
        self._derived: dict[tuple[str, str], bytes] = {}

    def __repr__(self) -> str:
        return f"KeyRing({', '.join(self._keys)})"

    @classmethod
    def parse(cls, text: str) -> KeyRing:
        """Return the ring that `text` describes; raise ValueError, which says what is wrong and shows
        no key."""
        items = [item.strip() for item in text.split(",")]
        return cls([_parse_key(item) for item in items if item])

    @staticmethod
    def generate_text() -> str:
        """Return a new ring of one random key, in the form that `parse` reads."""
        return f"{secrets.token_hex(4)}:{b64encode(secrets.token_bytes(KEY_BYTES)).decode()}"

    @property
    def key_ids(self) -> tuple[str, ...]:
        """The ids of all keys, the active one first."""
        return tuple(self._keys)

    def seal(self, plain: bytes, context: bytes) -> bytes:
        """Return `plain` encrypted with the active key (AES-256-GCM) for the record that `context` names."""
        head = bytes((SEAL_VERSION, len(self.active_id))) + self.active_id.encode("ascii")
        nonce = secrets.token_bytes(NONCE_BYTES)
        return head + nonce + self._ciphers[self.active_id].encrypt(nonce, plain, head + context)

    def open(self, sealed: bytes, context: bytes) -> bytes:
        """Return the plain bytes of a value sealed for this context; raises KeyMissing or SealBroken."""
        head, key_id = _seal_head(sealed)
        cipher = self._ciphers.get(key_id)
        if cipher is None:
            raise KeyMissing(key_id)
        body = len(head) + NONCE_BYTES
        try:
            return cipher.decrypt(sealed[len(head) : body], sealed[body:], head + context)
        except InvalidTag:
            raise SealBroken from None

    def is_current(self, sealed: bytes) -> bool:
        """Return whether `sealed` was made with the active key; else it is due to be sealed again."""
        return _seal_head(sealed)[1] == self.active_id

    def mac_key(self, purpose: str, key_id: str | None = None) -> bytes:
        """Return the 32 bytes that the active key, or the named one, gives for `purpose` (HKDF-SHA256)."""
        key_id = self.active_id if key_id is None else key_id
        known = self._derived.get((purpose, key_id))
        if known is None:
            known = self._derived[purpose, key_id] = self._derive(purpose, key_id)
        return known

    def mac_keys(self, purpose: str) -> tuple[bytes, ...]:
        """Return the derived keys of the whole ring, the active one first."""
        return tuple(self.mac_key(purpose, key_id) for key_id in self._keys)

    def _derive(self, purpose: str, key_id: str) -> bytes:
        if key_id not in self._keys:
            raise KeyMissing(key_id)
        info = b"pillarbox mac " + purpose.encode()
        return HKDF(algorithm=SHA256(), length=KEY_BYTES, salt=None, info=info).derive(self._keys[key_id])


def sealed_by(sealed: bytes) -> str:
    """Return the id of the key that has sealed a value; raise SealBroken."""
    return _seal_head(sealed)[1]


def new_api_key(below: Callable[[int], int] = secrets.randbelow) -> str:
    """Return a new API key: `re_`, 8 and 24 characters of base 62, 190 bits from `below` without bias."""
    return f"re_{base62(below(62**8), 8)}_{base62(below(62**24), 24)}"


def hash_api_key(token: str) -> bytes:
    """Return the hash under which a token is stored and looked up: its SHA-256. Any text has one."""
    return sha256(token.encode("utf-8", "surrogatepass")).digest()


def _parse_key(item: str) -> tuple[str, bytes]:
    key_id, colon, encoded = item.partition(":")
    if not colon or not KEY_ID.fullmatch(key_id):
        raise ValueError("A key must be written as id:base64, with an id of letters, digits, - and _.")
    try:
        key = b64decode(encoded, validate=True)
    except ValueError:
        raise ValueError(f"The key {key_id} is not valid base64.") from None
    if len(key) != KEY_BYTES:
        raise ValueError(f"The key {key_id} has {len(key)} bytes; it must have {KEY_BYTES}.")
    return key_id, key


def _seal_head(sealed: bytes) -> tuple[bytes, str]:
    """Return the bytes before the nonce, and the key id in them."""
    if len(sealed) < 2 or sealed[0] != SEAL_VERSION:
        raise SealBroken
    head = sealed[: 2 + sealed[1]]
    if len(sealed) < len(head) + NONCE_BYTES + TAG_BYTES or not head[2:].isascii():
        raise SealBroken
    return head, head[2:].decode("ascii")
