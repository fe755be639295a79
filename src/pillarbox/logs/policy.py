"""For how long the log of requests is kept."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from pillarbox.kernel.ids import first_id
from pillarbox.kernel.security.authentication import Caller

BEYOND_ALL: Final = UUID(int=2**128 - 1)


@dataclass(frozen=True, slots=True)
class LogPolicy:
    """`days` is what the operator has set for all teams; one may have a number of its own. 0 is no log."""

    days: int

    def days_of(self, caller: Caller) -> int:
        return self.for_team(caller.log_days)

    def for_team(self, own: int | None) -> int:
        return self.days if own is None else own

    def oldest(self, days: int, now: datetime) -> UUID:
        """Return the least id that is still kept."""
        return first_id(now - timedelta(days=days)) if days else BEYOND_ALL
