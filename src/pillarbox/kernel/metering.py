"""What the door tells every caller of a team with a quota: how much of it is used (conventions section 8)."""

from __future__ import annotations

from typing import Protocol

from pillarbox.kernel.auth import Caller


class Meter(Protocol):
    """Knows what teams have used."""

    async def headers(self, caller: Caller, *, fresh: bool) -> dict[str, str]:
        """The headers for a metered caller. What is not `fresh` may be a second old; where nothing can be
        found out there are none."""
        ...
