"""SQL that compares rollups with the history, and with each other, and corrects them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

import asyncpg

from pillarbox.kernel.postgres.database import Connection
from pillarbox.timeline.levels import NOBODY, QUARTER

SECONDS = 600
"""How long comparing a day may take."""


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


class RollupMismatch(NamedTuple):
    """A rollup whose counts are not the sum of its quarter hours (`beneath`); in the order of the columns."""

    level: int
    start: datetime
    domain_id: UUID
    domain_name: str
    broadcast_id: UUID
    written: Sequence[int]
    beneath: Sequence[int]


class HistorySpan(NamedTuple):
    """When counting began for a team, and up to when retention has removed its history."""

    first: datetime | None
    purged: datetime | None


async def span(pool: asyncpg.Pool, team_id: UUID) -> HistorySpan:
    """Return from when on a team's history can be counted."""
    [row] = await pool.fetch(
        """
    SELECT least(
               (SELECT r.start FROM rollups r WHERE r.team_id = $1 AND r.level = 3 ORDER BY r.start LIMIT 1),
               (SELECT min(i.start) FROM metric_increments i WHERE i.team_id = $1),
               (SELECT e.created_at FROM emails e WHERE e.team_id = $1 ORDER BY e.id LIMIT 1)) AS first,
           (SELECT p.before FROM purges p WHERE p.team_id = $1) AS purged
        """,
        team_id,
    )
    return HistorySpan(*row)


async def differences(
    conn: Connection, team_id: UUID, start: datetime, end: datetime, ids: tuple[UUID, UUID]
) -> list[Difference]:
    """Return what quarter hours of a day count otherwise than its history. `ids` are the least and the
    greatest id that an email of the day can have. Nothing where retention has begun with the day."""
    rows = await conn.fetch(
        """
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
        """,
        team_id,
        start,
        end,
        *ids,
        NOBODY,
        timeout=SECONDS,
    )
    return [Difference(*row) for row in rows]


async def add_increments(conn: Connection, rows: Sequence[Sequence[Any]]) -> None:
    """Store increments: team, id, quarter hour, domain, broadcast, and the metrics in order of `METRICS`."""
    await conn.executemany(
        """
    INSERT INTO metric_increments
           (team_id, id, start, domain_id, domain_name, broadcast_id, received, sent, delivered,
            delivery_delayed, failed, suppressed, bounced_transient, bounced_permanent,
            bounced_undetermined, opened, clicked, unique_opened, unique_clicked, complained, unsubscribed)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21)
        """,
        rows,
    )


async def mismatched_rollups(
    conn: Connection, team_id: UUID, start: datetime, end: datetime
) -> list[RollupMismatch]:
    """Return the rollups of whole days that differ from their quarter hours; the caller holds the lock.

    Rollups of ten seconds are compared as the sum of their quarter hour, where it has any.
    """
    rows = await conn.fetch(
        """
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
        """,
        team_id,
        start,
        end,
        timeout=SECONDS,
    )
    return [RollupMismatch(*row) for row in rows]


async def correct_rollups(
    conn: Connection, team_id: UUID, rollup_mismatches: Sequence[RollupMismatch]
) -> None:
    """Make these rollups the sums of their quarter hours; one that is missing is inserted."""
    await conn.executemany(
        """
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
        """,
        [
            (team_id, *row[:5], *(below - here for here, below in zip(row.written, row.beneath, strict=True)))
            for row in rollup_mismatches
        ],
    )
