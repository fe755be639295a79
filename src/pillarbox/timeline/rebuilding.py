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
from typing import NamedTuple
from uuid import UUID

import asyncpg

from pillarbox.kernel.ids import EPOCH, MICROSECOND, Ids, uuid7
from pillarbox.kernel.postgres.database import Connection
from pillarbox.timeline import levels
from pillarbox.timeline.levels import FINE, QUARTER, RollupMismatch
from pillarbox.timeline.queries import METRICS
from pillarbox.timeline.rollups import NOBODY, lock

DAY = timedelta(days=1)
WIDTHS = ((timedelta(minutes=15), FINE), (timedelta(hours=1), levels.HOUR), (DAY, levels.DAY))

# Counted and written, by quarter hour, domain, broadcast and metric, where the two differ. Nothing where
# retention has begun with the day.
DIFFERENCES = """
    WITH accepted AS (
        SELECT date_bin('15 minutes', e.created_at, 'epoch'::timestamptz) AS start, e.domain_id,
               e.domain_name, e.broadcast_id, 'received' AS metric, count(*) AS amount
          FROM emails e
          JOIN recipients r ON r.team_id = $1 AND r.email_id = e.id
         WHERE e.team_id = $1 AND e.id >= $4 AND e.id <= $5 AND e.created_at >= $2 AND e.created_at < $3
         GROUP BY 1, 2, 3, 4
    ), lines AS (
        SELECT t.id, t.email_id, t.at, t.kind, t.position, t.detail
          FROM timeline t
         WHERE t.team_id = $1 AND t.at >= $2 AND t.at < $3 AND t.position IS NOT NULL
           AND (t.detail->>'repeated' = 'true') IS NOT TRUE
    ), named AS (
        SELECT date_bin('15 minutes', l.at, 'epoch'::timestamptz) AS start, e.domain_id, e.domain_name,
               e.broadcast_id,
               CASE l.kind WHEN 'bounced'
                    THEN 'bounced_' || lower(coalesce(l.detail->'bounce'->>'type', 'Undetermined'))
                    ELSE l.kind END AS metric,
               CASE WHEN l.at = CASE l.kind WHEN 'opened' THEN r.opened_at
                                            WHEN 'clicked' THEN r.clicked_at END
                     AND 1 = row_number() OVER (PARTITION BY l.email_id, l.position, l.kind, l.at
                                                    ORDER BY l.id)
                    THEN 'unique_' || l.kind END AS first
          FROM lines l
          JOIN emails e ON e.team_id = $1 AND e.id = l.email_id
          JOIN recipients r ON r.team_id = $1 AND r.email_id = l.email_id AND r.position = l.position
    ), counted AS (
        SELECT start, coalesce(domain_id, $6) AS domain_id, domain_name,
               coalesce(broadcast_id, $6) AS broadcast_id, metric, sum(amount) AS amount
          FROM (SELECT start, domain_id, domain_name, broadcast_id, metric, amount FROM accepted
                UNION ALL
                SELECT start, domain_id, domain_name, broadcast_id, metric, 1 FROM named
                UNION ALL
                SELECT start, domain_id, domain_name, broadcast_id, first, 1 FROM named
                 WHERE first IS NOT NULL) AS every
         GROUP BY 1, 2, 3, 4, 5
    ), kept AS (
        SELECT start, domain_id, domain_name, broadcast_id, received, sent, delivered,
               delivery_delayed, failed, suppressed, bounced_transient, bounced_permanent,
               bounced_undetermined, opened, clicked, unique_opened, unique_clicked, complained,
               unsubscribed
          FROM rollups
         WHERE team_id = $1 AND level = 1 AND start >= $2 AND start < $3
        UNION ALL
        SELECT date_bin('15 minutes', start, 'epoch'::timestamptz), coalesce(domain_id, $6), domain_name,
               coalesce(broadcast_id, $6), received, sent, delivered, delivery_delayed, failed, suppressed,
               bounced_transient, bounced_permanent, bounced_undetermined, opened, clicked, unique_opened,
               unique_clicked, complained, unsubscribed
          FROM metric_increments
         WHERE team_id = $1 AND start >= $2 AND start < $3
    ), written AS (
        SELECT k.start, k.domain_id, k.domain_name, k.broadcast_id, m.metric, sum(m.amount) AS amount
          FROM kept k
         CROSS JOIN LATERAL (VALUES
               ('received', k.received), ('sent', k.sent), ('delivered', k.delivered),
               ('delivery_delayed', k.delivery_delayed), ('failed', k.failed), ('suppressed', k.suppressed),
               ('bounced_transient', k.bounced_transient), ('bounced_permanent', k.bounced_permanent),
               ('bounced_undetermined', k.bounced_undetermined), ('opened', k.opened), ('clicked', k.clicked),
               ('unique_opened', k.unique_opened), ('unique_clicked', k.unique_clicked),
               ('complained', k.complained), ('unsubscribed', k.unsubscribed)) AS m (metric, amount)
         GROUP BY 1, 2, 3, 4, 5
    )
    SELECT start, domain_id, domain_name, broadcast_id, metric,
           coalesce(w.amount, 0)::bigint AS written, coalesce(c.amount, 0)::bigint AS counted
      FROM written w
      FULL JOIN counted c USING (start, domain_id, domain_name, broadcast_id, metric)
     WHERE coalesce(w.amount, 0) <> coalesce(c.amount, 0)
       AND NOT EXISTS (SELECT FROM purges p WHERE p.team_id = $1 AND p.before > $2)
     ORDER BY start, domain_name, domain_id, broadcast_id, metric
"""

MEND = """
    INSERT INTO metric_increments
           (team_id, id, start, domain_id, domain_name, broadcast_id, received, sent, delivered,
            delivery_delayed, failed, suppressed, bounced_transient, bounced_permanent,
            bounced_undetermined, opened, clicked, unique_opened, unique_clicked, complained, unsubscribed)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21)
"""

SPAN = """
    SELECT least(
               (SELECT r.start FROM rollups r WHERE r.team_id = $1 AND r.level = 3 ORDER BY r.start LIMIT 1),
               (SELECT min(i.start) FROM metric_increments i WHERE i.team_id = $1),
               (SELECT e.created_at FROM emails e WHERE e.team_id = $1 ORDER BY e.id LIMIT 1)) AS first,
           (SELECT p.before FROM purges p WHERE p.team_id = $1) AS purged
"""


class Difference(NamedTuple):
    """One metric of one rollup that is not what the history counts; mostly of a quarter hour."""

    start: datetime
    domain_id: UUID
    domain_name: str
    broadcast_id: UUID
    metric: str
    written: int
    counted: int
    level: int = QUARTER


async def rebuild(
    pool: asyncpg.Pool,
    ids: Ids,
    team_id: UUID,
    now: datetime,
    *,
    correct: bool,
    since: datetime | None = None,
) -> AsyncIterator[Difference]:
    """The differences of a team, day by day; with `correct` each day is set right before it is returned.
    Nothing is said of the time before `since`, whose rollups are not kept."""
    first, purged = await _span(pool, team_id)
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


async def _span(pool: asyncpg.Pool, team_id: UUID) -> tuple[datetime | None, datetime | None]:
    """When counting began, and up to when retention has removed the history."""
    row = await pool.fetchrow(SPAN, team_id)
    return (row["first"], row["purged"]) if row is not None else (None, None)


async def _day_of(
    conn: Connection, ids: Ids, team_id: UUID, day: datetime, *, correct: bool
) -> Sequence[Difference]:
    # The lock comes first, and the snapshot after it: nobody else corrects in between.
    async with conn.transaction():
        await lock(conn)
        rows = await conn.fetch(
            DIFFERENCES,
            team_id,
            day,
            day + DAY,
            uuid7((day - EPOCH) // MICROSECOND, bytes(8)),
            uuid7((day + DAY - EPOCH) // MICROSECOND, b"\xff" * 8),
            NOBODY,
            timeout=600,
        )
        found = [Difference(*row) for row in rows]
        mismatched = await levels.mismatched_rollups(conn, team_id, day, day + DAY)
        if correct and found:
            await conn.executemany(MEND, _increments(ids, team_id, found))
        if correct and mismatched:
            await levels.correct_rollups(conn, team_id, mismatched)
    return [*found, *_of_levels(mismatched, found)]


def _of_levels(
    mismatched: Sequence[RollupMismatch], differences: Sequence[Difference]
) -> Iterator[Difference]:
    """What rollups of other levels say, where that is not what the history counts."""
    lacks: Counter[tuple[object, ...]] = Counter()
    for lack in differences:
        for width, level in WIDTHS:
            start = lack.start - (lack.start - EPOCH) % width
            lacks[level, start, *lack[1:5]] += lack.counted - lack.written
    for row in mismatched:
        for metric, written, beneath in zip(METRICS, row.written, row.beneath, strict=True):
            counted = beneath + lacks[*row[:5], metric]
            if written != counted:
                yield Difference(*row[1:5], metric, written, counted, row.level)


def _increments(ids: Ids, team_id: UUID, differences: Sequence[Difference]) -> list[tuple[object, ...]]:
    """One increment for each quarter hour, domain and broadcast; amounts may be negative."""
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
