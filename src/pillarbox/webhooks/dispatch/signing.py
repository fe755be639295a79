"""Signatures of deliveries (webhooks.md section 3; WH-01, WH-02).

Both families of header names have the same values: `svix-*` is what the official SDKs read, `webhook-*`
what the open standard says. The bytes that are signed are the bytes that are sent.
"""

from __future__ import annotations

import hmac
from base64 import b64encode
from collections.abc import Sequence

VERSION = "v1"
FAMILIES = ("svix", "webhook")


def signature(keys: Sequence[bytes], event: str, timestamp: int, body: bytes) -> str:
    """One signature for each key, in their order."""
    signed = f"{event}.{timestamp}.".encode("ascii") + body
    made = [b64encode(hmac.digest(key, signed, "sha256")).decode("ascii") for key in keys]
    return " ".join(f"{VERSION},{one}" for one in made)


def headers(keys: Sequence[bytes], event: str, timestamp: int, body: bytes) -> dict[str, str]:
    """The headers that let a receiver verify a delivery and know it again."""
    values = {"id": event, "timestamp": str(timestamp), "signature": signature(keys, event, timestamp, body)}
    return {f"{family}-{name}": value for family in FAMILIES for name, value in values.items()}
