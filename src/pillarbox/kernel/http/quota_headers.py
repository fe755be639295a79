"""What the door tells every caller of a team with a quota: how much of it is used (conventions section 8)."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

from pillarbox.kernel.security.authentication import Caller


class Meter(Protocol):
    """Knows what teams have used."""

    async def headers(self, caller: Caller, since: datetime) -> dict[str, str]:
        """The headers for a metered caller: what was so at some time after `since`. None where nothing can be
        found out."""
        ...
