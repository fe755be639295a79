"""Which ids the copies of a broadcast can have: ids ascend with time, and copies are made between its start
and its end."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final
from uuid import UUID

from pillarbox.broadcasts.reports.queries import ReportedBroadcast
from pillarbox.kernel.ids import first_id

CLOCKS: Final = timedelta(hours=1)
"""By how much the clocks of machines that make copies may differ."""
FOREVER: Final = datetime(9999, 12, 31, tzinfo=UTC)
MOST: Final = 10**15
"""More rows than a list has."""


def ids_of_copies(broadcast: ReportedBroadcast) -> tuple[UUID, UUID] | None:
    """Return the least and the greatest id that a copy can have; None before the broadcast has begun."""
    if broadcast.queued_at is None:
        return None
    end = FOREVER if broadcast.sent_at is None else broadcast.sent_at + CLOCKS
    return first_id(broadcast.queued_at - CLOCKS), first_id(end)
