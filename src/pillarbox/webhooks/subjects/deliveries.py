"""The webhook events of one subject, such as an email, with the answers to them.

Rows of webhook events have no index by subject. An event gets its id right after the line of history that it
tells of, and ids are in the order of time: so events are looked for behind the lines of history, and a
bounded number of them is looked through.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final
from uuid import UUID

from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.webhooks.log import DeliveryLog
from pillarbox.webhooks.subjects import queries
from pillarbox.webhooks.subjects.queries import SubjectDelivery

BEFORE: Final = 100
AFTER: Final = 10_000
"""Milliseconds that the id of an event may be from that of its line of history: the lines of a batch come
first, and are written before the events where these take a statement of their own."""
TIME_SHIFT: Final = 80
"""Bits behind the milliseconds of an id."""
MOST_RANGES: Final = 50
MOST_DELIVERIES: Final = 100
SCANNED: Final = 2000
"""Events of one webhook that are looked through behind one line: more than a batch has."""


async def deliveries_of(
    db: TeamDb, log: DeliveryLog, subject_id: UUID, line_ids: Iterable[UUID]
) -> list[SubjectDelivery]:
    """Return what the webhooks of the team had of the subject behind these lines of history, oldest first and
    bounded."""
    ranges = ranges_of(line_ids)[:MOST_RANGES]
    if not ranges:
        return []
    return await queries.deliveries(db, subject_id, ranges, log.oldest, MOST_DELIVERIES, SCANNED)


def ranges_of(line_ids: Iterable[UUID]) -> Sequence[tuple[UUID, UUID]]:
    """Return the ranges of ids behind these lines, without overlap, in their order."""
    ranges: list[tuple[UUID, UUID]] = []
    for line_id in sorted(line_ids):
        milliseconds = line_id.int >> TIME_SHIFT
        start, end = (
            UUID(int=max(0, milliseconds + distance) << TIME_SHIFT) for distance in (-BEFORE, AFTER)
        )
        if ranges and start < ranges[-1][1]:
            before = ranges[-1][0]
            if start <= before:
                continue
            ranges[-1] = before, start
        ranges.append((start, end))
    return ranges
