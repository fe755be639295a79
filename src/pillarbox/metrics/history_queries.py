"""SQL of the metrics over the history of emails, for the odd edges of a range and for what is asked by email.

Counts come as a period's number, the keys that were asked for (null otherwise) and the columns in the order
of `definitions.COLUMNS`. All statements of one answer run in one snapshot.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from asyncpg import Record

from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.metrics.queries import MetricsSelection
from pillarbox.timeline.levels import NOBODY

# $2 to $3: stretches of time; $4: beginnings of the periods; $5 to $7: filters; $8 to $10: what rows are
# distinguished by; $11 to $12: the least and the greatest id of each stretch. Each source is read by two
# queries of which only one can find rows, so each walks its own index. Recipients and emails are looked up
# one by one: how many lines a stretch has cannot be foreseen, and a guess that is too high would read the
# tables whole.
EVENTS = """
    WITH stretch AS (
        SELECT s.start, s.until, s.low, s.high
          FROM unnest($2::timestamptz[], $3::timestamptz[], $11::uuid[], $12::uuid[])
               AS s (start, until, low, high)
    ), accepted AS (
        SELECT e.id, e.created_at
          FROM stretch s
          JOIN emails e ON e.team_id = $1 AND e.created_at >= s.start AND e.created_at < s.until
         WHERE $7::uuid[] IS NULL AND e.id >= s.low AND e.id <= s.high
        UNION ALL
        SELECT e.id, e.created_at
          FROM stretch s
          JOIN emails e ON e.team_id = $1 AND e.created_at >= s.start AND e.created_at < s.until
         WHERE e.id = ANY ($7::uuid[])
    ), lines AS (
        SELECT t.id, t.email_id, t.at, t.kind, t.position, t.detail
          FROM stretch s
          JOIN timeline t ON t.team_id = $1 AND t.at >= s.start AND t.at < s.until
         WHERE $7::uuid[] IS NULL AND t.position IS NOT NULL
        UNION ALL
        SELECT t.id, t.email_id, t.at, t.kind, t.position, t.detail
          FROM stretch s
          JOIN timeline t ON t.team_id = $1 AND t.at >= s.start AND t.at < s.until
         WHERE t.email_id = ANY ($7::uuid[]) AND t.position IS NOT NULL
    ), happened AS (
        SELECT a.id AS email_id, a.created_at AS at, 'received' AS kind, NULL AS bounce, false AS first,
               (SELECT count(*) FROM recipients r WHERE r.team_id = $1 AND r.email_id = a.id) AS amount
          FROM accepted a
        UNION ALL
        SELECT t.email_id, t.at, t.kind, coalesce(t.detail->'bounce'->>'type', 'Undetermined'),
               t.at = CASE t.kind WHEN 'opened' THEN r.opened_at WHEN 'clicked' THEN r.clicked_at END
               AND 1 = row_number() OVER (PARTITION BY t.email_id, t.position, t.kind, t.at ORDER BY t.id),
               1
          FROM lines t
         CROSS JOIN LATERAL (
               SELECT k.opened_at, k.clicked_at
                 FROM recipients k
                WHERE k.team_id = $1 AND k.email_id = t.email_id AND k.position = t.position
               OFFSET 0) AS r
         WHERE (t.detail->>'repeated' = 'true') IS NOT TRUE
    )
    SELECT width_bucket(x.at, $4::timestamptz[]) - 1 AS period,
           CASE WHEN $8 THEN coalesce(e.domain_id, $13) END AS domain_id,
           CASE WHEN $8 THEN e.domain_name END AS domain_name,
           CASE WHEN $9 THEN coalesce(e.broadcast_id, $13) END AS broadcast_id,
           CASE WHEN $10 THEN x.email_id END AS email_id,
           coalesce(sum(x.amount) FILTER (WHERE x.kind = 'received'), 0)::bigint,
           count(*) FILTER (WHERE x.kind = 'sent'),
           count(*) FILTER (WHERE x.kind = 'delivered'),
           count(*) FILTER (WHERE x.kind = 'delivery_delayed'),
           count(*) FILTER (WHERE x.kind = 'failed'),
           count(*) FILTER (WHERE x.kind = 'suppressed'),
           count(*) FILTER (WHERE x.kind = 'bounced' AND x.bounce = 'Transient'),
           count(*) FILTER (WHERE x.kind = 'bounced' AND x.bounce = 'Permanent'),
           count(*) FILTER (WHERE x.kind = 'bounced' AND x.bounce = 'Undetermined'),
           count(*) FILTER (WHERE x.kind = 'opened'),
           count(*) FILTER (WHERE x.kind = 'clicked'),
           count(*) FILTER (WHERE x.kind = 'opened' AND x.first),
           count(*) FILTER (WHERE x.kind = 'clicked' AND x.first),
           count(*) FILTER (WHERE x.kind = 'complained'),
           count(*) FILTER (WHERE x.kind = 'unsubscribed')
      FROM happened x
     CROSS JOIN LATERAL (
           SELECT k.domain_id, k.domain_name, k.broadcast_id
             FROM emails k
            WHERE k.team_id = $1 AND k.id = x.email_id
           OFFSET 0) AS e
     WHERE ($5::uuid[] IS NULL OR e.domain_id = ANY ($5::uuid[]))
       AND ($6::uuid[] IS NULL OR e.broadcast_id = ANY ($6::uuid[]))
     GROUP BY 1, 2, 3, 4, 5
     LIMIT $14
"""

# Emails that something happened to in [$2, $3), one row for each line of history, read a few at a time.
TOUCHED = """
    SELECT t.email_id FROM timeline t
     WHERE t.team_id = $1 AND t.at >= $2 AND t.at < $3
"""

ACCEPTED = """
    SELECT e.id FROM emails e
     WHERE e.team_id = $1 AND e.created_at >= $2 AND e.created_at < $3 AND e.id >= $4 AND e.id <= $5
     LIMIT $6
"""


async def events(
    db: TeamDb,
    stretches: Sequence[tuple[datetime, datetime]],
    ids: Sequence[tuple[UUID, UUID]],
    begins: Sequence[datetime],
    metrics_selection: MetricsSelection,
) -> list[Record]:
    """Return the sums over the history of the stretches; `ids` are the least and the greatest id that an
    email of each can have."""
    found: list[Record] = list(
        await db.source.fetch(
            EVENTS,
            db.team_id,
            [start for start, _ in stretches],
            [end for _, end in stretches],
            begins,
            metrics_selection.domains,
            metrics_selection.broadcasts,
            metrics_selection.emails,
            metrics_selection.by_domain,
            metrics_selection.by_broadcast,
            metrics_selection.by_email,
            [low for low, _ in ids],
            [high for _, high in ids],
            NOBODY,
            metrics_selection.most,
        )
    )
    return found


async def emails_in(
    db: TeamDb, start: datetime, end: datetime, ids: tuple[UUID, UUID], limit: int
) -> list[UUID] | None:
    """Return the emails that were accepted or touched in [start, end); None as soon as they are more
    than `limit`."""
    found = set(await db.values(ACCEPTED, start, end, *ids, limit + 1))
    async for row in db.connection.cursor(TOUCHED, db.team_id, start, end, prefetch=2000):
        found.add(row[0])
        if len(found) > limit:
            return None
    return None if len(found) > limit else list(found)
