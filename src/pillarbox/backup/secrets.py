"""The key ring in a backup: encrypted with a key that scrypt makes of a passphrase (RFC 7914)."""

from __future__ import annotations

import secrets
from base64 import b64decode, b64encode

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt
from msgspec import Struct

from pillarbox.backup.failure import BackupError, WrongPassphrase

COST = 2**17
BLOCK = 8
PARALLEL = 1
"""128 MiB and some tenths of a second for each guess."""

MOST_COST = 2**20
SALT_BYTES = 16
NONCE_BYTES = 12
KEY_BYTES = 32
PURPOSE = b"pillarbox backup key ring 1 "


class SealedKeys(Struct, frozen=True):
    """The file. Its name in the backup is part of what is sealed."""

    kdf: str
    cost: int
    block: int
    parallel: int
    salt: str
    nonce: str
    sealed: str


def sealed(ring: str, passphrase: str, backup: str) -> bytes:
    """Return the text of a ring, encrypted for this backup."""
    salt, nonce = secrets.token_bytes(SALT_BYTES), secrets.token_bytes(NONCE_BYTES)
    key = _key(passphrase, salt, COST, BLOCK, PARALLEL)
    text = AESGCM(key).encrypt(nonce, ring.encode(), PURPOSE + backup.encode())
    keys = SealedKeys(
        kdf="scrypt",
        cost=COST,
        block=BLOCK,
        parallel=PARALLEL,
        salt=b64encode(salt).decode(),
        nonce=b64encode(nonce).decode(),
        sealed=b64encode(text).decode(),
    )
    return msgspec.json.encode(keys) + b"\n"


def opened(file: bytes, passphrase: str, backup: str) -> str:
    """Return the text of the ring of an undamaged file; raises WrongPassphrase, or BackupError where it is
    none."""
    try:
        found = msgspec.json.decode(file, type=SealedKeys)
        salt, nonce, text = (
            b64decode(part, validate=True) for part in (found.salt, found.nonce, found.sealed)
        )
        if (
            found.kdf != "scrypt"
            or not 2 <= found.cost <= MOST_COST
            or (found.block, found.parallel) != (8, 1)
        ):
            raise ValueError
        key = _key(passphrase, salt, found.cost, found.block, found.parallel)
    except (ValueError, msgspec.DecodeError):
        raise BackupError(f"The key ring of the backup {backup} is damaged.") from None
    try:
        return AESGCM(key).decrypt(nonce, text, PURPOSE + backup.encode()).decode()
    except (InvalidTag, ValueError):
        raise WrongPassphrase(backup) from None


def _key(passphrase: str, salt: bytes, cost: int, block: int, parallel: int) -> bytes:
    return Scrypt(salt=salt, length=KEY_BYTES, n=cost, r=block, p=parallel).derive(passphrase.encode())
