"""The invariants of the counts of broadcasts, on which their reports rest. A broadcast whose copies retention
may have removed is not checked."""

from __future__ import annotations

from pillarbox.kernel.postgres.invariant import Invariant

INVARIANTS: tuple[Invariant, ...] = (
    Invariant(
        "broadcast_metric_differs_from_history",
        "In the quarter hour from {start:%Y-%m-%d %H:%M}Z the metric {metric} of broadcast {broadcast_id} "
        "is {written}, but the history of its copies counts {counted}.",
        """
        WITH copies AS (
            SELECT e.team_id, e.broadcast_id, e.id, e.created_at, r.position, r.opened_at, r.clicked_at
              FROM emails e
              JOIN recipients r ON r.team_id = e.team_id AND r.email_id = e.id
             WHERE e.broadcast_id IS NOT NULL
        ), lines AS (
            SELECT c.team_id, c.broadcast_id, c.created_at AS at, 'received' AS metric
              FROM copies c
             UNION ALL
            SELECT c.team_id, c.broadcast_id, t.at,
                   CASE t.kind
                        WHEN 'bounced'
                        THEN 'bounced_' || lower(coalesce(t.detail->'bounce'->>'type', 'undetermined'))
                        ELSE t.kind
                   END
              FROM copies c
              JOIN timeline t ON t.team_id = c.team_id AND t.email_id = c.id AND t.position = c.position
             WHERE t.kind <> 'canceled' AND (t.detail->>'repeated' = 'true') IS NOT TRUE
             UNION ALL
            SELECT c.team_id, c.broadcast_id, first.at, first.metric
              FROM copies c
             CROSS JOIN LATERAL (VALUES ('unique_opened', c.opened_at), ('unique_clicked', c.clicked_at))
                   AS first (metric, at)
             WHERE first.at IS NOT NULL
        ), counted AS (
            SELECT team_id, broadcast_id, date_bin('15 minutes', at, 'epoch'::timestamptz) AS start, metric,
                   count(*) AS counted
              FROM lines
             GROUP BY 1, 2, 3, 4
        ), written AS (
            SELECT parts.team_id, parts.broadcast_id, parts.start, each.metric,
                   sum(each.amount)::bigint AS written
              FROM (SELECT team_id, broadcast_id,
                           date_bin('15 minutes', start, 'epoch'::timestamptz) AS start,
                           received, sent, delivered, delivery_delayed, failed, suppressed, bounced_transient,
                           bounced_permanent, bounced_undetermined, opened, clicked, unique_opened,
                           unique_clicked, complained, unsubscribed
                      FROM metric_increments
                     WHERE broadcast_id IS NOT NULL
                     UNION ALL
                    SELECT team_id, broadcast_id, start, received, sent, delivered, delivery_delayed, failed,
                           suppressed, bounced_transient, bounced_permanent, bounced_undetermined, opened,
                           clicked, unique_opened, unique_clicked, complained, unsubscribed
                      FROM rollups
                     WHERE level = 1 AND broadcast_id <> '00000000-0000-0000-0000-000000000000') AS parts
             CROSS JOIN LATERAL (VALUES
                   ('received', received), ('sent', sent), ('delivered', delivered),
                   ('delivery_delayed', delivery_delayed), ('failed', failed), ('suppressed', suppressed),
                   ('bounced_transient', bounced_transient), ('bounced_permanent', bounced_permanent),
                   ('bounced_undetermined', bounced_undetermined), ('opened', opened), ('clicked', clicked),
                   ('unique_opened', unique_opened), ('unique_clicked', unique_clicked),
                   ('complained', complained), ('unsubscribed', unsubscribed)) AS each (metric, amount)
             GROUP BY 1, 2, 3, 4
        )
        SELECT team_id, broadcast_id, start, metric, coalesce(w.written, 0) AS written,
               coalesce(c.counted, 0) AS counted
          FROM written w
          FULL JOIN counted c USING (team_id, broadcast_id, start, metric)
         WHERE coalesce(w.written, 0) <> coalesce(c.counted, 0)
           AND NOT EXISTS (SELECT FROM purges p
                             JOIN broadcasts b ON b.team_id = p.team_id AND b.queued_at < p.before
                            WHERE p.team_id IN (w.team_id, c.team_id) AND b.id = broadcast_id)
         ORDER BY team_id, broadcast_id, start, metric
         LIMIT $1
        """,
    ),
    Invariant(
        "broadcast_moments_differ",
        "In the quarter hour from {start:%Y-%m-%d %H:%M}Z the rollups of ten seconds of broadcast "
        "{broadcast_id} do not add up to that of the quarter hour.",
        """
        WITH moments AS (
            SELECT team_id, broadcast_id, date_bin('15 minutes', start, 'epoch'::timestamptz) AS start,
                   ARRAY[sum(sent), sum(delivered), sum(suppressed), sum(bounced_transient),
                         sum(bounced_permanent), sum(bounced_undetermined), sum(opened), sum(clicked),
                         sum(unique_opened), sum(unique_clicked), sum(complained),
                         sum(unsubscribed)]::bigint[] AS counts
              FROM rollups
             WHERE level = 0 AND broadcast_id <> '00000000-0000-0000-0000-000000000000'
             GROUP BY 1, 2, 3
        ), quarters AS (
            SELECT r.team_id, r.broadcast_id, r.start,
                   ARRAY[sum(sent), sum(delivered), sum(suppressed), sum(bounced_transient),
                         sum(bounced_permanent), sum(bounced_undetermined), sum(opened), sum(clicked),
                         sum(unique_opened), sum(unique_clicked), sum(complained),
                         sum(unsubscribed)]::bigint[] AS counts
              FROM rollups r
             WHERE r.level = 1 AND r.broadcast_id <> '00000000-0000-0000-0000-000000000000'
               AND EXISTS (SELECT FROM rollups f
                            WHERE f.team_id = r.team_id AND f.level = 0 AND f.start >= r.start
                              AND f.start < r.start + interval '15 minutes')
             GROUP BY 1, 2, 3
        )
        SELECT team_id, broadcast_id, start
          FROM moments m
          FULL JOIN quarters q USING (team_id, broadcast_id, start)
         WHERE coalesce(m.counts, array_fill(0::bigint, ARRAY[12]))
               <> coalesce(q.counts, array_fill(0::bigint, ARRAY[12]))
         ORDER BY team_id, broadcast_id, start
         LIMIT $1
        """,
    ),
)
