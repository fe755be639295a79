"""Says whether a delivery was signed with a secret, and if not, why (webhooks.md section 3).

For people who write a receiver: they paste what arrived. Nothing is stored.
"""

from __future__ import annotations

import binascii
import hmac
from base64 import b64decode
from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from pillarbox.webhooks.dispatch.posting import FAMILIES, VERSION, signature
from pillarbox.webhooks.signing_secrets import PREFIX

TOLERANCE: Final = timedelta(minutes=5)
"""Official libraries refuse a delivery whose time is further away."""

LONGEST_LINE: Final = 1000
"""Longer lines are no header of a delivery."""

_AROUND: Final = " \t\"',"


class SignatureVerdict(StrEnum):
    """The result of checking a signature; its value is a part of the key of a text."""

    VALID = "valid"
    OUT_OF_TIME = "out_of_time"
    MISMATCH = "mismatch"
    NOT_A_SECRET = "not_a_secret"  # noqa: S105 (a word)
    NO_HEADERS = "no_headers"
    NO_TIME = "no_time"


def verdict_of(body: str, headers: str, secret: str, now: datetime) -> SignatureVerdict:
    """Return the verdict on a delivery as it was pasted: its body, its headers as lines, and the secret."""
    key = _key(secret.strip())
    if key is None:
        return SignatureVerdict.NOT_A_SECRET
    values = signature_headers(headers)
    if values is None:
        return SignatureVerdict.NO_HEADERS
    if (
        not values["timestamp"].isascii()
        or not values["timestamp"].isdigit()
        or len(values["timestamp"]) > 12
    ):
        return SignatureVerdict.NO_TIME
    sent = int(values["timestamp"])
    signatures = [entry for entry in values["signature"].split() if entry.startswith(f"{VERSION},")]
    if not any(_fits(key, values["id"], sent, text, signatures) for text in _readings(body)):
        return SignatureVerdict.MISMATCH
    is_in_time = abs(now.timestamp() - sent) <= TOLERANCE.total_seconds()
    return SignatureVerdict.VALID if is_in_time else SignatureVerdict.OUT_OF_TIME


def signature_headers(text: str) -> Mapping[str, str] | None:
    """Return `id`, `timestamp` and `signature` of headers as lines; None where one is missing."""
    given = dict([_header(line) for line in text.splitlines() if len(line) <= LONGEST_LINE])
    for family in FAMILIES:
        values = {name: given.get(f"{family}-{name}", "") for name in ("id", "timestamp", "signature")}
        if all(values.values()) and values["id"].isascii():
            return values
    return None


def _header(line: str) -> tuple[str, str]:
    """Return the name and value of a line, as a header field, or as code and JSON write it; quotes are
    left out."""
    name, colon, value = line.partition(":")
    if not colon:
        name, _, value = line.partition("=")
    return name.strip(_AROUND).lower(), value.strip(_AROUND)


def _readings(body: str) -> list[str]:
    """Return the body as it came, and with what forms and editors change of it taken back."""
    unix = body.replace("\r\n", "\n")
    return list(dict.fromkeys([body, unix, unix.rstrip("\n"), unix.strip()]))


def _fits(key: bytes, event: str, sent: int, body: str, signatures: list[str]) -> bool:
    expected = signature([key], event, sent, body.encode("utf-8", "surrogatepass"))
    return any(hmac.compare_digest(expected.encode(), entry.encode()) for entry in signatures)


def _key(secret: str) -> bytes | None:
    try:
        key = b64decode(secret.removeprefix(PREFIX), validate=True)
    except (binascii.Error, ValueError):
        return None
    return key or None
