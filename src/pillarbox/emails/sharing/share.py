"""Links that show one email to anyone who has them (emails.md 5.3).

Nothing is stored: the token is signed and contains the email and the end of its time.
"""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

from pillarbox.emails.requests.schedule import ScheduleError, parse_expiry
from pillarbox.kernel.security.tokens import Signer, TokenInvalid
from pillarbox.kernel.wire.problems import InvalidField

KIND = "share"
DEFAULT = timedelta(hours=48)
LONGEST = timedelta(hours=48)


def lifetime(value: object, field: str) -> timedelta:
    """Return how long a link holds."""
    if not isinstance(value, str):
        raise InvalidField(field, "Use a string such as `10m`, `2 hours` or `1h 30m`.")
    try:
        found = parse_expiry(value)
    except ScheduleError as wrong:
        raise InvalidField(field, str(wrong)) from None
    if not timedelta(0) < found <= LONGEST:
        raise InvalidField(field, "Use at most 48 hours.")
    return found


class ShareLinks:
    """Makes and reads share links."""

    def __init__(self, signer: Signer, public_url: str) -> None:
        self._signer = signer
        self._public_url = public_url

    def link(self, team_id: UUID, email_id: UUID, ttl: timedelta) -> str:
        token = self._signer.issue(KIND, (team_id, email_id), ttl)
        return f"{self._public_url}/shared?token={token}"

    def read(self, token: str) -> tuple[UUID, UUID]:
        """Return the team and the email; raise TokenInvalid or TokenExpired."""
        fields = self._signer.read(KIND, token)
        if len(fields) != 2 or not isinstance(fields[0], UUID) or not isinstance(fields[1], UUID):
            raise TokenInvalid
        return fields[0], fields[1]
