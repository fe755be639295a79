"""The key record of a DKIM signature, and whether it may verify it (RFC 6376, 3.6.1; RFC 8301; RFC 8463)."""

from __future__ import annotations

import binascii
import re
from dataclasses import dataclass
from typing import Literal

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.asymmetric.utils import Prehashed
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import load_der_public_key

from pillarbox.mail.authentication import tag_list

FEWEST_BITS = 1024
MOST_BITS = 8192

_SPACES = re.compile(r"[ \t\r\n]+")
_PADDING = PKCS1v15()
_PREHASHED = Prehashed(SHA256())

KeyType = Literal["rsa", "ed25519"]


class KeyRefused(Exception):  # noqa: N818 - a result for the mail, not a mistake of ours
    """The record cannot verify the signature; `result` is the RFC 8601 word for it."""

    def __init__(self, result: Literal["permerror", "policy"], reason: str) -> None:
        super().__init__(reason)
        self.result = result
        self.reason = reason


@dataclass(frozen=True, slots=True)
class DkimKey:
    """A key that verifies; `testing` is `t=y`, `strict_identity` is `t=s`."""

    public: RSAPublicKey | Ed25519PublicKey
    testing: bool
    strict_identity: bool

    def verifies(self, signature: bytes, digest: bytes) -> bool:
        """Return whether the signature is of this SHA-256 digest."""
        try:
            if isinstance(self.public, RSAPublicKey):
                self.public.verify(signature, digest, _PADDING, _PREHASHED)
            else:
                # RFC 8463, 3: Ed25519 signs the digest itself.
                self.public.verify(signature, digest)
        except InvalidSignature:
            return False
        return True


def key_of(records: list[str], key_type: KeyType) -> DkimKey:
    """Return the key among the TXT records of the selector, or raise KeyRefused."""
    found = [record for record in map(_tags, records) if record is not None and "p" in record]
    if not found:
        raise KeyRefused("permerror", "there is no key record")
    if len(found) > 1:
        raise KeyRefused("permerror", "there are several key records")
    tags = found[0]
    if not tags["p"]:
        raise KeyRefused("permerror", "the key has been revoked")
    if tags.get("k", "rsa").lower() != key_type:
        raise KeyRefused("permerror", "the key is of another kind than the signature")
    if "sha256" not in tag_list.names(tags.get("h", "sha256").lower()):
        raise KeyRefused("permerror", "the key may not be used with SHA-256")
    if not {"*", "email"} & set(tag_list.names(tags.get("s", "*").lower())):
        raise KeyRefused("permerror", "the key is not for mail")
    flags = tag_list.names(tags.get("t", "").lower())
    return DkimKey(_loaded(tags["p"], key_type), "y" in flags, "s" in flags)


def _tags(text: str) -> dict[str, str] | None:
    try:
        tags = tag_list.parse(text)
    except tag_list.TagError:
        return None
    if "v" in tags and (tags["v"] != "DKIM1" or next(iter(tags)) != "v"):
        return None
    return tags


def _loaded(text: str, key_type: KeyType) -> RSAPublicKey | Ed25519PublicKey:
    try:
        raw = binascii.a2b_base64(_SPACES.sub("", text), strict_mode=True)
        if key_type == "ed25519":
            return Ed25519PublicKey.from_public_bytes(raw)
        key = load_der_public_key(raw)
    except (ValueError, UnsupportedAlgorithm):
        raise KeyRefused("permerror", "the key cannot be read") from None
    if not isinstance(key, RSAPublicKey) or key.key_size > MOST_BITS:
        raise KeyRefused("permerror", "the key cannot be used")
    if key.key_size < FEWEST_BITS:
        raise KeyRefused("policy", f"the key has fewer than {FEWEST_BITS} bits")
    return key
