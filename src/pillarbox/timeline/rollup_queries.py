"""SQL of the rollups: increments are added to them, and old ones are removed."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from pillarbox.kernel.postgres.database import Connection, Source
from pillarbox.kernel.work.collectors import changed
from pillarbox.timeline.levels import NOBODY

FOLD_LOCK = 0x70696C6C_666F6C64


class TeamRetention(NamedTuple):
    """How many days a team keeps its metrics; None where the installation's number holds."""

    team_id: UUID
    days: int | None


async def lock(conn: Connection) -> None:
    """Lock the rollups: nobody else writes them until the transaction ends."""
    await conn.execute("SELECT pg_advisory_xact_lock($1)", FOLD_LOCK)


async def teams_with_increments(source: Source) -> Sequence[UUID]:
    """Return the teams that have increments, by jumping from team to team in the primary key."""
    rows = await source.fetch(
        """
        WITH RECURSIVE found AS (
            (SELECT team_id FROM metric_increments ORDER BY team_id LIMIT 1)
            UNION ALL
            SELECT (SELECT i.team_id FROM metric_increments i
                     WHERE i.team_id > found.team_id ORDER BY i.team_id LIMIT 1)
              FROM found
             WHERE found.team_id IS NOT NULL
        )
        SELECT team_id FROM found WHERE team_id IS NOT NULL
        """
    )
    return [row["team_id"] for row in rows]


async def fold(conn: Connection, team_id: UUID, limit: int, fine_since: datetime) -> int:
    """Add the oldest increments of a team to the rollups; return how many those were.

    Rollups of ten seconds are written from `fine_since` on, and where the quarter hour has some already.
    """
    taken: int = await conn.fetchval(
        """
        WITH taken AS (
            DELETE FROM metric_increments
             WHERE team_id = $1
               AND id IN (SELECT i.id FROM metric_increments i WHERE i.team_id = $1 ORDER BY i.id LIMIT $2)
            RETURNING start, coalesce(domain_id, $4) AS domain_id, domain_name,
                      coalesce(broadcast_id, $4) AS broadcast_id, received, sent, delivered,
                      delivery_delayed, failed, suppressed, bounced_transient, bounced_permanent,
                      bounced_undetermined, opened, clicked, unique_opened, unique_clicked, complained,
                      unsubscribed
        ), summed AS (
            SELECT l.level, date_bin(l.width, t.start, 'epoch'::timestamptz) AS start, t.domain_id,
                   t.domain_name, t.broadcast_id, sum(t.received) AS received, sum(t.sent) AS sent,
                   sum(t.delivered) AS delivered, sum(t.delivery_delayed) AS delivery_delayed,
                   sum(t.failed) AS failed, sum(t.suppressed) AS suppressed,
                   sum(t.bounced_transient) AS bounced_transient,
                   sum(t.bounced_permanent) AS bounced_permanent,
                   sum(t.bounced_undetermined) AS bounced_undetermined, sum(t.opened) AS opened,
                   sum(t.clicked) AS clicked, sum(t.unique_opened) AS unique_opened,
                   sum(t.unique_clicked) AS unique_clicked, sum(t.complained) AS complained,
                   sum(t.unsubscribed) AS unsubscribed
              FROM taken t
             CROSS JOIN (VALUES (0::smallint, interval '10 seconds'), (1, '15 minutes'), (2, '1 hour'),
                                (3, '1 day')) AS l (level, width)
             WHERE l.level > 0 OR t.start >= $3
                OR EXISTS (SELECT FROM rollups f
                            WHERE f.team_id = $1 AND f.level = 0
                              AND f.start >= date_bin('15 minutes', t.start, 'epoch'::timestamptz)
                              AND f.start < date_bin('15 minutes', t.start, 'epoch'::timestamptz)
                                            + interval '15 minutes')
             GROUP BY 1, 2, 3, 4, 5
        ), added AS (
            INSERT INTO rollups AS r
                   (team_id, level, start, domain_id, domain_name, broadcast_id, received, sent, delivered,
                    delivery_delayed, failed, suppressed, bounced_transient, bounced_permanent,
                    bounced_undetermined, opened, clicked, unique_opened, unique_clicked, complained,
                    unsubscribed)
            SELECT $1, s.* FROM summed s ORDER BY s.level, s.start, s.domain_id, s.domain_name, s.broadcast_id
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
        )
        SELECT count(*) FROM taken
        """,
        team_id,
        limit,
        fine_since,
        NOBODY,
    )
    return taken


async def remove_quiet(
    conn: Connection, start: datetime, end: datetime, busy: int, busy_per_row: int, limit: int
) -> int:
    """Remove the ten-second rollups of up to `limit` quiet quarter hours of any team; return how many."""
    return changed(
        await conn.execute(
            """
    WITH fine AS (
        SELECT team_id, date_bin('15 minutes', start, 'epoch'::timestamptz) AS quarter, count(*) AS rows,
               sum(received + sent + delivered + delivery_delayed + failed + suppressed + bounced_transient
                   + bounced_permanent + bounced_undetermined + opened + clicked + complained
                   + unsubscribed) AS events
          FROM rollups
         WHERE level = 0 AND start >= $1 AND start < $2
         GROUP BY 1, 2
    ), quiet AS (
        SELECT team_id, quarter FROM fine WHERE events < $3 OR events < $4 * rows LIMIT $5
    )
    DELETE FROM rollups r
     USING quiet
     WHERE r.team_id = quiet.team_id AND r.level = 0
       AND r.start >= quiet.quarter AND r.start < quiet.quarter + interval '15 minutes'
            """,
            start,
            end,
            busy,
            busy_per_row,
            limit,
        )
    )


async def retentions(source: Source) -> list[TeamRetention]:
    """Return how long each team keeps its metrics."""
    rows = await source.fetch("SELECT id AS team_id, metrics_retention_days AS days FROM teams ORDER BY id")
    return [TeamRetention(*row) for row in rows]


async def mark_removal(source: Source, team_id: UUID, before: datetime, first_id: UUID) -> None:
    """Note that a team's rollups before this day go, so that nobody compares the rest with the history."""
    await source.execute(
        """
        INSERT INTO rollup_purges AS p (team_id, before, first_id) VALUES ($1, $2, $3)
        ON CONFLICT (team_id) DO UPDATE SET before = excluded.before, first_id = excluded.first_id
         WHERE p.before < excluded.before
        """,
        team_id,
        before,
        first_id,
    )


async def remove_old(conn: Connection, team_id: UUID, before: datetime, limit: int) -> int:
    """Remove up to `limit` of a team's rollups before this day, but for those of broadcasts; return how
    many."""
    return changed(
        await conn.execute(
            """
        WITH old AS MATERIALIZED (
            SELECT level, start, domain_id, domain_name, broadcast_id
              FROM rollups
             WHERE team_id = $1 AND level = ANY ('{0,1,2,3}'::smallint[]) AND start < $2 AND broadcast_id = $4
             LIMIT $3
        )
        DELETE FROM rollups r
         USING old
         WHERE r.team_id = $1 AND r.level = old.level AND r.start = old.start
           AND r.domain_id = old.domain_id AND r.domain_name = old.domain_name
           AND r.broadcast_id = old.broadcast_id
            """,
            team_id,
            before,
            limit,
            NOBODY,
        )
    )
