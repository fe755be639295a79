"""Finds requests in the log by method, status, path, user agent and time.

The table has no index for this, so each page reads at most `SCANNED` rows. A page may hold fewer requests
than its limit, or none, and still have a following one.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

from pillarbox.kernel.ids import first_id
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.logs import filter_queries
from pillarbox.logs.policy import BEYOND_ALL
from pillarbox.logs.queries import ListedLog

SCANNED: Final = 10_000
LONGEST: Final = 200
METHODS: Final = ("GET", "POST", "PUT", "PATCH", "DELETE")
STATUSES: Final = {
    "2xx": (200, 299),
    "4xx": (400, 499),
    "5xx": (500, 599),
}
ALL_STATUSES: Final = (0, 999)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFilter:
    """The conditions on the requests of a list; None where one does not matter."""

    method: str | None = None
    status: str | None = None
    path: str | None = None
    agent: str | None = None
    since: datetime | None = None
    until: datetime | None = None

    @property
    def status_range(self) -> tuple[int, int]:
        """The statuses that fit: a class such as 4xx, or a single one."""
        if self.status in STATUSES:
            return STATUSES[self.status]
        if self.status and self.status.isascii() and self.status.isdigit() and len(self.status) == 3:
            return int(self.status), int(self.status)
        return ALL_STATUSES


class FilteredLogs(NamedTuple):
    """One page of requests, and the id below which the next page begins."""

    rows: list[ListedLog]
    following: UUID | None


async def find_logs(
    db: TeamDb, log_filter: LogFilter, *, oldest: UUID, after: UUID | None, limit: int
) -> FilteredLogs:
    """Return the newest requests that fit, none before `oldest`, behind the one whose id is `after`."""
    upper = BEYOND_ALL if log_filter.until is None else first_id(log_filter.until)
    upper = min(upper, after) if after else upper
    lower = oldest if log_filter.since is None else max(oldest, first_id(log_filter.since))
    end = await filter_queries.id_after_rows(db, upper, lower, SCANNED)
    least, last = log_filter.status_range
    path, agent = (text[:LONGEST] if text else None for text in (log_filter.path, log_filter.agent))
    rows = await filter_queries.filtered(
        db, upper, end or lower, log_filter.method, least, last, path, agent, limit + 1
    )
    if len(rows) > limit:
        return FilteredLogs(rows[:limit], rows[limit - 1].id)
    return FilteredLogs(rows, end)
