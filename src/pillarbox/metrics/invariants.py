"""The invariants between metrics and history, and between the levels of the rollups, as a table like that of
emails. They say nothing of the time before retention has removed emails or rollups."""

from __future__ import annotations

from pillarbox.kernel.postgres.invariant import Invariant

INVARIANTS: tuple[Invariant, ...] = (
    Invariant(
        "metric_differs_from_history",
        "In the quarter hour from {start:%Y-%m-%d %H:%M}Z the metric {metric} is {written}, "
        "but the history counts {counted}.",
        """
        WITH accepted AS (
            SELECT e.team_id, date_bin('15 minutes', e.created_at, 'epoch'::timestamptz) AS start,
                   count(*) AS received
              FROM emails e
              JOIN recipients r ON r.team_id = e.team_id AND r.email_id = e.id
             GROUP BY 1, 2
        ), happened AS (
            SELECT team_id, date_bin('15 minutes', at, 'epoch'::timestamptz) AS start,
                   count(*) FILTER (WHERE kind = 'sent') AS sent,
                   count(*) FILTER (WHERE kind = 'delivered') AS delivered,
                   count(*) FILTER (WHERE kind = 'delivery_delayed') AS delivery_delayed,
                   count(*) FILTER (WHERE kind = 'failed') AS failed,
                   count(*) FILTER (WHERE kind = 'suppressed') AS suppressed,
                   count(*) FILTER (WHERE kind = 'complained') AS complained,
                   count(*) FILTER (WHERE kind = 'bounced' AND bounce = 'Permanent') AS bounced_permanent,
                   count(*) FILTER (WHERE kind = 'bounced' AND bounce = 'Transient') AS bounced_transient,
                   count(*) FILTER (WHERE kind = 'bounced' AND bounce = 'Undetermined')
                       AS bounced_undetermined
              FROM (SELECT team_id, at, kind, coalesce(detail->'bounce'->>'type', 'Undetermined') AS bounce
                      FROM timeline
                     WHERE position IS NOT NULL AND (detail->>'repeated' = 'true') IS NOT TRUE) AS lines
             GROUP BY 1, 2
        ), written AS (
            SELECT team_id, start, sum(received) AS received, sum(sent) AS sent,
                   sum(delivered) AS delivered, sum(delivery_delayed) AS delivery_delayed,
                   sum(failed) AS failed, sum(suppressed) AS suppressed, sum(complained) AS complained,
                   sum(bounced_permanent) AS bounced_permanent,
                   sum(bounced_transient) AS bounced_transient,
                   sum(bounced_undetermined) AS bounced_undetermined
              FROM (SELECT team_id, date_bin('15 minutes', start, 'epoch'::timestamptz) AS start,
                           received, sent, delivered, delivery_delayed, failed, suppressed, complained,
                           bounced_permanent, bounced_transient, bounced_undetermined
                      FROM metric_increments
                     UNION ALL
                    SELECT team_id, start, received, sent, delivered, delivery_delayed, failed, suppressed,
                           complained, bounced_permanent, bounced_transient, bounced_undetermined
                      FROM rollups
                     WHERE level = 1) AS parts
             GROUP BY 1, 2
        )
        SELECT team_id, start, pair.metric, coalesce(pair.written, 0)::bigint AS written,
               coalesce(pair.counted, 0) AS counted
          FROM written
          FULL JOIN happened USING (team_id, start)
          FULL JOIN accepted USING (team_id, start)
         CROSS JOIN LATERAL (VALUES
               ('received', written.received, accepted.received),
               ('sent', written.sent, happened.sent),
               ('delivered', written.delivered, happened.delivered),
               ('delivery_delayed', written.delivery_delayed, happened.delivery_delayed),
               ('failed', written.failed, happened.failed),
               ('suppressed', written.suppressed, happened.suppressed),
               ('complained', written.complained, happened.complained),
               ('bounced_permanent', written.bounced_permanent, happened.bounced_permanent),
               ('bounced_transient', written.bounced_transient, happened.bounced_transient),
               ('bounced_undetermined', written.bounced_undetermined, happened.bounced_undetermined)
               ) AS pair (metric, written, counted)
         WHERE coalesce(pair.written, 0) <> coalesce(pair.counted, 0)
           AND start >= ALL (SELECT p.before FROM purges p
                              WHERE p.team_id IN (written.team_id, happened.team_id, accepted.team_id))
           AND start >= ALL (SELECT p.before FROM rollup_purges p
                              WHERE p.team_id IN (written.team_id, happened.team_id, accepted.team_id))
         ORDER BY team_id, start
         LIMIT $1
        """,
    ),
    Invariant(
        "rollup_levels_differ",
        "On {day:%Y-%m-%d} the rollups of level {level} are not the sum of those of quarter hours.",
        """
        WITH days AS (
            SELECT r.team_id, r.level, date_bin('1 day', r.start, 'epoch'::timestamptz) AS day, r.domain_id,
                   r.broadcast_id,
                   ARRAY[sum(r.received), sum(r.sent), sum(r.delivered), sum(r.delivery_delayed),
                         sum(r.failed), sum(r.suppressed), sum(r.bounced_transient),
                         sum(r.bounced_permanent), sum(r.bounced_undetermined), sum(r.opened),
                         sum(r.clicked), sum(r.unique_opened), sum(r.unique_clicked), sum(r.complained),
                         sum(r.unsubscribed)]::bigint[] AS counts
              FROM rollups r
             WHERE r.level > 0
             GROUP BY 1, 2, 3, 4, 5
        ), quarters AS (
            SELECT d.team_id, l.level, d.day, d.domain_id, d.broadcast_id, d.counts
              FROM days d
             CROSS JOIN (VALUES (2), (3)) AS l (level)
             WHERE d.level = 1
        ), above AS (
            SELECT d.team_id, d.level, d.day, d.domain_id, d.broadcast_id, d.counts
              FROM days d
             WHERE d.level > 1
        )
        SELECT DISTINCT team_id, level, day
          FROM above a
          FULL JOIN quarters q USING (team_id, level, day, domain_id, broadcast_id)
         WHERE coalesce(a.counts, array_fill(0::bigint, ARRAY[15]))
               <> coalesce(q.counts, array_fill(0::bigint, ARRAY[15]))
           AND day >= ALL (SELECT p.before FROM rollup_purges p
                            WHERE p.team_id IN (a.team_id, q.team_id))
         ORDER BY team_id, day, level
         LIMIT $1
        """,
    ),
)
