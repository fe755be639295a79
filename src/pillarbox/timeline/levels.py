"""Do the levels of the rollups say the same? Hours, UTC days and ten-second rollups against quarter hours.

Folding adds to all of them in one statement, so they differ only where something else went wrong. Answers
come from every level; so a check that read quarter hours alone would see a part of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from pillarbox.kernel.postgres.database import Connection

FINE, QUARTER, HOUR, DAY = 0, 1, 2, 3
NAMES = {FINE: "ten seconds", QUARTER: "quarter hour", HOUR: "hour", DAY: "day"}

# Of one team and the time from $2 to $3, which are whole days: what differs from the quarter hours below it.
# Rollups of ten seconds are compared as the sum of their quarter hour, where it has any.
UNEVEN = """
    WITH quarters AS (
        SELECT l.level, date_bin(l.width, r.start, 'epoch'::timestamptz) AS start, r.domain_id, r.domain_name,
               r.broadcast_id,
               ARRAY[sum(r.received), sum(r.sent), sum(r.delivered), sum(r.delivery_delayed), sum(r.failed),
                     sum(r.suppressed), sum(r.bounced_transient), sum(r.bounced_permanent),
                     sum(r.bounced_undetermined), sum(r.opened), sum(r.clicked), sum(r.unique_opened),
                     sum(r.unique_clicked), sum(r.complained), sum(r.unsubscribed)]::bigint[] AS counts
          FROM rollups r
         CROSS JOIN (VALUES (0::smallint, interval '15 minutes'), (2, '1 hour'), (3, '1 day'))
               AS l (level, width)
         WHERE r.team_id = $1 AND r.level = 1 AND r.start >= $2 AND r.start < $3
           AND (l.level > 0
                OR EXISTS (SELECT FROM rollups f
                            WHERE f.team_id = $1 AND f.level = 0
                              AND f.start >= r.start AND f.start < r.start + interval '15 minutes'))
         GROUP BY 1, 2, 3, 4, 5
    ), kept AS (
        SELECT r.level,
               CASE r.level WHEN 0 THEN date_bin('15 minutes', r.start, 'epoch'::timestamptz)
                            ELSE r.start END AS start,
               r.domain_id, r.domain_name, r.broadcast_id,
               ARRAY[sum(r.received), sum(r.sent), sum(r.delivered), sum(r.delivery_delayed), sum(r.failed),
                     sum(r.suppressed), sum(r.bounced_transient), sum(r.bounced_permanent),
                     sum(r.bounced_undetermined), sum(r.opened), sum(r.clicked), sum(r.unique_opened),
                     sum(r.unique_clicked), sum(r.complained), sum(r.unsubscribed)]::bigint[] AS counts
          FROM rollups r
         WHERE r.team_id = $1 AND r.level = ANY ('{0,2,3}'::smallint[]) AND r.start >= $2 AND r.start < $3
         GROUP BY 1, 2, 3, 4, 5
    ), both_sides AS (
        SELECT level, start, domain_id, domain_name, broadcast_id,
               coalesce(k.counts, array_fill(0::bigint, ARRAY[15])) AS written,
               coalesce(q.counts, array_fill(0::bigint, ARRAY[15])) AS beneath
          FROM kept k
          FULL JOIN quarters q USING (level, start, domain_id, domain_name, broadcast_id)
    )
    SELECT level, start, domain_id, domain_name, broadcast_id, written, beneath
      FROM both_sides
     WHERE written <> beneath
     ORDER BY start, level, domain_name, domain_id, broadcast_id
"""

# Adds to one rollup, which is made where it is missing.
ADD = """
    INSERT INTO rollups AS r
           (team_id, level, start, domain_id, domain_name, broadcast_id, received, sent, delivered,
            delivery_delayed, failed, suppressed, bounced_transient, bounced_permanent,
            bounced_undetermined, opened, clicked, unique_opened, unique_clicked, complained, unsubscribed)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21)
    ON CONFLICT (team_id, level, start, domain_id, domain_name, broadcast_id) DO UPDATE
       SET received = r.received + excluded.received, sent = r.sent + excluded.sent,
           delivered = r.delivered + excluded.delivered,
           delivery_delayed = r.delivery_delayed + excluded.delivery_delayed,
           failed = r.failed + excluded.failed, suppressed = r.suppressed + excluded.suppressed,
           bounced_transient = r.bounced_transient + excluded.bounced_transient,
           bounced_permanent = r.bounced_permanent + excluded.bounced_permanent,
           bounced_undetermined = r.bounced_undetermined + excluded.bounced_undetermined,
           opened = r.opened + excluded.opened, clicked = r.clicked + excluded.clicked,
           unique_opened = r.unique_opened + excluded.unique_opened,
           unique_clicked = r.unique_clicked + excluded.unique_clicked,
           complained = r.complained + excluded.complained,
           unsubscribed = r.unsubscribed + excluded.unsubscribed
"""


class RollupMismatch(NamedTuple):
    """A rollup whose counts are not the sum of its quarter hours (`beneath`); in the order of the columns."""

    level: int
    start: datetime
    domain_id: UUID
    domain_name: str
    broadcast_id: UUID
    written: Sequence[int]
    beneath: Sequence[int]


async def mismatched_rollups(
    conn: Connection, team_id: UUID, start: datetime, end: datetime
) -> list[RollupMismatch]:
    """The rollups of whole days that differ from their quarter hours; the caller holds the lock."""
    return [RollupMismatch(*row) for row in await conn.fetch(UNEVEN, team_id, start, end, timeout=600)]


async def correct_rollups(
    conn: Connection, team_id: UUID, rollup_mismatches: Sequence[RollupMismatch]
) -> None:
    """Make these rollups the sums of their quarter hours."""
    await conn.executemany(
        ADD,
        [
            (team_id, *row[:5], *(below - here for here, below in zip(row.written, row.beneath, strict=True)))
            for row in rollup_mismatches
        ],
    )
