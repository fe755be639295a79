"""Counting the history anew and mending rollups that differ from it.

One UTC day of one team at a time, in one snapshot: what emails, recipients and timeline say against rollups
of quarter hours and increments. A difference is written as one more increment, which folding then adds at
every level; so mending is safe beside everything else that counts. Levels that differ among themselves are
made even first. Days whose history retention has removed are left alone, also where it removes it meanwhile.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from datetime import datetime, timedelta
from uuid import UUID

import asyncpg

from pillarbox.kernel.ids import EPOCH, MICROSECOND, Ids, uuid7
from pillarbox.kernel.postgres.database import Connection
from pillarbox.timeline import levels, rollup_queries
from pillarbox.timeline import rebuilding_queries as queries
from pillarbox.timeline.levels import NOBODY
from pillarbox.timeline.queries import METRICS
from pillarbox.timeline.rebuilding_queries import Difference, RollupMismatch

DAY = timedelta(days=1)
WIDTHS = ((timedelta(minutes=15), levels.FINE), (timedelta(hours=1), levels.HOUR), (DAY, levels.DAY))


async def rebuild(
    pool: asyncpg.Pool,
    ids: Ids,
    team_id: UUID,
    now: datetime,
    *,
    correct: bool,
    since: datetime | None = None,
) -> AsyncIterator[Difference]:
    """Yield the differences of a team, day by day; with `correct` each day is set right before it is
    returned. Nothing is said of the time before `since`, whose rollups are not kept."""
    first, purged = await queries.span(pool, team_id)
    if first is None:
        return
    day = _day(first if since is None else max(first, since))
    if purged is not None:
        day = max(day, _day(purged) + DAY)
    while day <= now:
        async with pool.acquire() as conn:
            found = await _day_of(conn, ids, team_id, day, correct=correct)
        for difference in found:
            yield difference
        day += DAY


async def _day_of(
    conn: Connection, ids: Ids, team_id: UUID, day: datetime, *, correct: bool
) -> Sequence[Difference]:
    # The lock comes first, and the snapshot after it: nobody else corrects in between.
    async with conn.transaction():
        await rollup_queries.lock(conn)
        ids_of_day = (
            uuid7((day - EPOCH) // MICROSECOND, bytes(8)),
            uuid7((day + DAY - EPOCH) // MICROSECOND, b"\xff" * 8),
        )
        found = await queries.differences(conn, team_id, day, day + DAY, ids_of_day)
        mismatched = await queries.mismatched_rollups(conn, team_id, day, day + DAY)
        if correct and found:
            await queries.add_increments(conn, _increments(ids, team_id, found))
        if correct and mismatched:
            await queries.correct_rollups(conn, team_id, mismatched)
    return [*found, *_of_levels(mismatched, found)]


def _of_levels(
    mismatched: Sequence[RollupMismatch], differences: Sequence[Difference]
) -> Iterator[Difference]:
    """Yield the counts of other levels that differ from those of the history."""
    lacks: Counter[tuple[object, ...]] = Counter()
    for lack in differences:
        for width, level in WIDTHS:
            start = lack.start - (lack.start - EPOCH) % width
            lacks[level, start, *lack[1:5]] += lack.counted - lack.written
    for row in mismatched:
        for metric, written, beneath in zip(METRICS, row.written, row.beneath, strict=True):
            counted = beneath + lacks[*row[:5], metric]
            if written != counted:
                yield Difference(*row[1:5], metric=metric, written=written, counted=counted, level=row.level)


def _increments(ids: Ids, team_id: UUID, differences: Sequence[Difference]) -> list[tuple[object, ...]]:
    """Return one increment for each quarter hour, domain and broadcast; amounts may be negative."""
    amounts: dict[tuple[object, ...], dict[str, int]] = {}
    for lack in differences:
        key = (
            lack.start,
            None if lack.domain_id == NOBODY else lack.domain_id,
            lack.domain_name,
            None if lack.broadcast_id == NOBODY else lack.broadcast_id,
        )
        amounts.setdefault(key, {})[lack.metric] = lack.counted - lack.written
    return [
        (team_id, ids.new(), *key, *(counts.get(metric, 0) for metric in METRICS))
        for key, counts in amounts.items()
    ]


def _day(instant: datetime) -> datetime:
    return instant.replace(hour=0, minute=0, second=0, microsecond=0)
