"""The webhook events of one subject, such as an email, with the answers to them.

Rows of webhook events have no index by subject. Their ids begin with the time, so they are looked for around
the times at which something happened to the subject.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from pillarbox.kernel.ids import first_id
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.webhooks.log import DeliveryLog
from pillarbox.webhooks.subjects import queries
from pillarbox.webhooks.subjects.queries import SubjectDelivery

BEFORE: Final = timedelta(seconds=2)
AFTER: Final = timedelta(seconds=10)
"""How far the id of an event may be from its time: clocks differ, and events are committed in batches."""
MOST_RANGES: Final = 50
MOST_DELIVERIES: Final = 100


async def deliveries_of(
    db: TeamDb, log: DeliveryLog, subject_id: UUID, instants: Iterable[datetime]
) -> list[SubjectDelivery]:
    """Return what the webhooks of the team had of the subject at these times, oldest first and bounded."""
    ranges = ranges_of(instants)[:MOST_RANGES]
    if not ranges:
        return []
    starts = [first_id(start) for start, _ in ranges]
    ends = [first_id(end) for _, end in ranges]
    return await queries.deliveries(db, subject_id, starts, ends, log.oldest, MOST_DELIVERIES)


def ranges_of(instants: Iterable[datetime]) -> Sequence[tuple[datetime, datetime]]:
    """Return the ranges of time around these instants, without overlap, in their order."""
    ranges: list[tuple[datetime, datetime]] = []
    for instant in sorted(instants):
        start, end = instant - BEFORE, instant + AFTER
        if ranges and start <= ranges[-1][1]:
            ranges[-1] = ranges[-1][0], end
        else:
            ranges.append((start, end))
    return ranges
