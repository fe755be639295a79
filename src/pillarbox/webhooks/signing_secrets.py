"""Signing secrets: made, sealed at rest, rotated with an overlap (webhooks.md sections 1 and 1.6).

A row keeps them newest first. The newest has no end; an earlier one signs until its own. Each is sealed
for its webhook, so copied to another row it opens nothing (SEC-04).
"""

from __future__ import annotations

import contextlib
import secrets
from base64 import b64decode, b64encode
from collections.abc import Sequence
from datetime import datetime, timedelta
from uuid import UUID

from pillarbox.kernel.security.secrets import KeyRing, KeyRingError

PREFIX = "whsec_"
KEY_BYTES = 24
OVERLAP = timedelta(hours=24)
MOST_EARLIER = 5
"""How many earlier secrets sign beside the newest one."""


def new_secret() -> str:
    """Return a new secret: `whsec_` and 24 random bytes in standard base64."""
    return PREFIX + b64encode(secrets.token_bytes(KEY_BYTES)).decode("ascii")


def key_of(secret: str) -> bytes:
    """Return the key that a secret stands for."""
    return b64decode(secret.removeprefix(PREFIX))


def seal(ring: KeyRing, webhook_id: UUID, secret: str) -> bytes:
    """Return the secret as it lies in the row of that webhook."""
    return ring.seal(key_of(secret), _context(webhook_id))


def shown(ring: KeyRing, webhook_id: UUID, sealed: bytes) -> str:
    """Return the secret as the wire shows it."""
    return PREFIX + b64encode(ring.open(sealed, _context(webhook_id))).decode("ascii")


def signing_keys(
    ring: KeyRing, webhook_id: UUID, sealed: Sequence[bytes], ends: Sequence[datetime | None], now: datetime
) -> list[bytes]:
    """Return the keys that sign at this instant, the newest first. An earlier one that the key ring cannot
    open is left out: a new secret is the cure for one that is lost, and it must work at once."""
    keys = [ring.open(sealed[0], _context(webhook_id))]
    for secret, end in zip(sealed[1:], ends[1:], strict=True):
        if end is None or end > now:
            with contextlib.suppress(KeyRingError):
                keys.append(ring.open(secret, _context(webhook_id)))
    return keys


def _context(webhook_id: UUID) -> bytes:
    return b"webhooks" + webhook_id.bytes
