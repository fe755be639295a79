"""One-time passwords that a phone reckons from the time (RFC 6238). Pure."""

from __future__ import annotations

import hmac
import secrets
from base64 import b32encode
from datetime import datetime
from typing import Final
from urllib.parse import quote, urlencode

STEP_SECONDS: Final = 30
DIGITS: Final = 6
SEED_BYTES: Final = 20
"""As long as the hash, which RFC 4226 recommends in section 4."""
STEPS_BESIDE: Final = (0, -1, 1)
"""A phone's clock may be a step behind or ahead (RFC 6238, 5.2)."""
LARGEST_CODE: Final = 10**DIGITS


def new_seed() -> bytes:
    """Return a new secret to share with a phone."""
    return secrets.token_bytes(SEED_BYTES)


def step_at(instant: datetime) -> int:
    """Return the number of the time step that an instant lies in (RFC 6238, 4.2)."""
    return int(instant.timestamp()) // STEP_SECONDS


def code_of(seed: bytes, step: int) -> str:
    """Return the code of a time step (RFC 4226, 5.3, with HMAC-SHA-1, which is what all phones do)."""
    digest = hmac.digest(seed, step.to_bytes(8, "big"), "sha1")
    start = digest[-1] & 15
    number = int.from_bytes(digest[start : start + 4], "big") & 0x7FFFFFFF
    return f"{number % LARGEST_CODE:0{DIGITS}}"


def step_of(seed: bytes, code: str, instant: datetime, after: int) -> int | None:
    """Return the time step whose code this is, near an instant and later than `after`; None where it is no
    code. A code counts once: the caller keeps its step as the next `after`."""
    now = step_at(instant)
    found = None
    for beside in STEPS_BESIDE:
        step = now + beside
        # All are compared, so that the time it takes says nothing.
        if hmac.compare_digest(code_of(seed, step).encode(), code.encode()) and step > after:
            found = step if found is None else found
    return found


def as_text(seed: bytes) -> str:
    """Return the seed as people type it into a phone: base32 in groups of four."""
    text = b32encode(seed).decode("ascii").rstrip("=")
    return " ".join(text[at : at + 4] for at in range(0, len(text), 4))


def as_uri(seed: bytes, account: str, issuer: str) -> str:
    """Return the seed as phones read it from a picture: an `otpauth` URI."""
    secret = b32encode(seed).decode("ascii").rstrip("=")
    label = f"{quote(issuer, safe='')}:{quote(account, safe='@')}"
    return f"otpauth://totp/{label}?" + urlencode({"secret": secret, "issuer": issuer}, quote_via=quote)
