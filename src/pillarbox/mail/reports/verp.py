"""Bounce addresses that say which work item they belong to (VERP; OUT-15, BNC-02, contract decision 30).

The local part is `b-` and 56 characters of lower-case base32 (RFC 4648, 6): 35 bytes, so there are no
spare bits and each token has one spelling. It fits in 64 characters and survives servers that change
the case of local parts. The MAC has 104 bits: an address that counts as a bounce cannot be forged.

    team number 4 | email id 16 | group 2 | HMAC-SHA256, cut: 13
"""

from __future__ import annotations

import hmac
import re
from base64 import b32decode, b32encode
from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

PREFIX = "b-"
PAYLOAD_BYTES = 22
MAC_BYTES = 13
LOCAL_PART = re.compile(r"b-[a-z2-7]{56}")


class BouncedItem(NamedTuple):
    """The work item that a bounce address names."""

    team_number: int
    email_id: UUID
    group: int


class VerpSigner:
    """Makes and reads bounce local parts. The first key signs; every key is accepted."""

    __slots__ = ("_keys",)

    def __init__(self, keys: Sequence[bytes]) -> None:
        if not keys:
            raise ValueError("at least one key is needed")
        self._keys = tuple(keys)

    def token(self, team_number: int, email_id: UUID, group: int) -> str:
        """Return the local part of the envelope sender; 58 characters."""
        payload = team_number.to_bytes(4, "big") + email_id.bytes + group.to_bytes(2, "big")
        return PREFIX + b32encode(payload + _mac(self._keys[0], payload)).decode("ascii").lower()

    def read(self, local_part: str) -> BouncedItem | None:
        """Return what a local part names, in any case of letters; None when we did not make it."""
        if not local_part.isascii() or not LOCAL_PART.fullmatch(local_part.lower()):
            return None
        raw = b32decode(local_part[len(PREFIX) :].upper())
        payload, mac = raw[:PAYLOAD_BYTES], raw[PAYLOAD_BYTES:]
        if not any(hmac.compare_digest(_mac(key, payload), mac) for key in self._keys):
            return None
        return BouncedItem(
            int.from_bytes(payload[:4], "big"), UUID(bytes=payload[4:20]), int.from_bytes(payload[20:], "big")
        )


def _mac(key: bytes, payload: bytes) -> bytes:
    return hmac.digest(key, b"verp 1" + payload, "sha256")[:MAC_BYTES]
