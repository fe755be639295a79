"""Browsers that are known to be somebody's: they keep a token that says so (SEC-03, docs/decisions/0106).

A token is given where somebody has a full session, or has opened a link that was mailed to them. It lets
nobody in; whoever has it is not kept out by what others try elsewhere.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple
from uuid import UUID

from pillarbox.kernel.security.secrets import KeyRing, KeyRingError

LASTS: Final = timedelta(days=180)
RENEWED_AFTER: Final = timedelta(days=30)
LONGEST: Final = 400
ID_BYTES: Final = 16
TIME_BYTES: Final = 8


class KnownDevice(NamedTuple):
    """A browser of a person. There are no more of them than sessions and links that were mailed."""

    id: UUID
    since: datetime


class KnownDevices:
    """Makes and reads tokens; nothing of them is stored."""

    def __init__(self, ring: KeyRing) -> None:
        self._ring = ring

    def token(self, now: datetime, person_id: UUID, device_id: UUID) -> str:
        """Return the token that the browser keeps. `device_id` is that of a session, or made from a link."""
        plain = device_id.bytes + int(now.timestamp()).to_bytes(TIME_BYTES, "big")
        return urlsafe_b64encode(self._ring.seal(plain, _context(person_id))).decode()

    def find(self, now: datetime, person_id: UUID, token: str | None) -> KnownDevice | None:
        """Return the browser whose token this is; None where it is not this person's, or too old."""
        if not token or len(token) > LONGEST:
            return None
        try:
            plain = self._ring.open(urlsafe_b64decode(token.encode()), _context(person_id))
        except (KeyRingError, ValueError):
            return None
        if len(plain) != ID_BYTES + TIME_BYTES:
            return None
        since = datetime.fromtimestamp(int.from_bytes(plain[ID_BYTES:], "big"), UTC)
        return KnownDevice(UUID(bytes=plain[:ID_BYTES]), since) if now - since < LASTS else None


def _context(person_id: UUID) -> bytes:
    return b"known device of " + person_id.bytes
