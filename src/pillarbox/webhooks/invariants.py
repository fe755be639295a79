"""The invariants of events and the deliveries that webhooks must have of them (`pillarbox verify`).

They hold for endpoints that are enabled, for the kinds of events that these want, and from a minute after
`since` on, as long as all rows are kept. The minute is for transactions that were open when a webhook was
changed. Listeners are left out: they delete their rows.
"""

from __future__ import annotations

from pillarbox.kernel.postgres.invariant import Invariant

INVARIANTS: tuple[Invariant, ...] = (
    # An event is published once for each line of history, but that they were sent once for all
    # recipients, and a delay that is only repeated not at all. Rows of a delivery do not name the line, so
    # events of one instant are counted.
    Invariant(
        "event_without_delivery",
        "Of {happened} events {kind} at {at:%Y-%m-%d %H:%M:%S.%f}Z the webhook {webhook_id} has {stored}.",
        """
        WITH told AS (
            SELECT team_id, 'email.' || kind AS kind, at, email_id
              FROM timeline
             WHERE kind <> 'sent' AND (detail->>'repeated' = 'true') IS NOT TRUE
             UNION ALL
            SELECT team_id, 'email.sent', sent_at, id FROM emails WHERE sent_at IS NOT NULL
             UNION ALL
            SELECT team_id, 'email.received', created_at, id FROM received_emails
             UNION ALL
            SELECT team_id, 'email.judged', created_at, id FROM received_emails WHERE verdicts IS NOT NULL
        ), wanted AS (
            SELECT w.team_id, w.id AS webhook_id, told.kind, told.at, count(*) AS happened,
                   min(told.email_id::text) AS email_id
              FROM told
              JOIN webhooks w
                ON w.team_id = told.team_id AND w.kind = 'endpoint' AND w.status = 'enabled'
               AND told.kind = ANY (w.events) AND told.at >= w.since + interval '1 minute'
             GROUP BY w.team_id, w.id, told.kind, told.at
        ), owed AS (
            SELECT team_id, webhook_id, kind, at, count(*) AS stored
              FROM (SELECT team_id, webhook_id, kind, at
                      FROM webhook_deliveries
                     WHERE replay = '00000000-0000-0000-0000-000000000000'
                     UNION ALL
                    SELECT team_id, webhook_id, kind, at FROM webhook_outcomes) AS rows
             WHERE kind LIKE 'email.%'
             GROUP BY team_id, webhook_id, kind, at
        )
        SELECT team_id, webhook_id, kind, at, happened, coalesce(stored, 0) AS stored,
               CASE happened WHEN 1 THEN email_id END AS email_id
          FROM wanted
          LEFT JOIN owed USING (team_id, webhook_id, kind, at)
         WHERE coalesce(stored, 0) < happened
         LIMIT $1
        """,
    ),
    Invariant(
        "body_without_delivery",
        "The event {event_id} ({kind}) was told to webhooks, but {webhook_id} has no row of it.",
        """
        SELECT e.team_id, w.id AS webhook_id, e.id AS event_id, e.kind
          FROM webhook_events e
          JOIN webhooks w
            ON w.team_id = e.team_id AND w.kind = 'endpoint' AND w.status = 'enabled'
           AND e.kind = ANY (w.events) AND e.at >= w.since + interval '1 minute'
         WHERE NOT EXISTS (SELECT FROM webhook_deliveries d
                            WHERE d.team_id = w.team_id AND d.webhook_id = w.id AND d.event_id = e.id
                              AND d.replay = '00000000-0000-0000-0000-000000000000')
           AND NOT EXISTS (SELECT FROM webhook_outcomes o
                            WHERE o.team_id = w.team_id AND o.webhook_id = w.id AND o.event_id = e.id)
         LIMIT $1
        """,
    ),
    Invariant(
        "delivery_without_body",
        "The event {event_id} ({kind}) of the webhook {webhook_id} has nothing that its body is made of.",
        """
        SELECT owed.team_id, owed.webhook_id, owed.event_id, owed.kind
          FROM (SELECT team_id, webhook_id, event_id, kind, at, subject_id FROM webhook_deliveries
                 UNION ALL
                SELECT team_id, webhook_id, event_id, kind, at, subject_id FROM webhook_outcomes) AS owed
          JOIN webhooks w
            ON w.team_id = owed.team_id AND w.id = owed.webhook_id AND owed.at >= w.since
         WHERE owed.subject_id IS NULL
           AND NOT EXISTS (SELECT FROM webhook_events e
                            WHERE e.team_id = owed.team_id AND e.id = owed.event_id)
         LIMIT $1
        """,
    ),
    Invariant(
        "delivery_open_and_ended",
        "The event {event_id} ({kind}) of the webhook {webhook_id} is open and has ended as {status}.",
        """
        SELECT d.team_id, d.webhook_id, d.event_id, d.kind, o.status
          FROM webhook_deliveries d
          JOIN webhook_outcomes o
            ON o.team_id = d.team_id AND o.webhook_id = d.webhook_id AND o.event_id = d.event_id
         WHERE d.replay = '00000000-0000-0000-0000-000000000000'
         LIMIT $1
        """,
    ),
    Invariant(
        "success_without_attempt",
        "The event {event_id} ({kind}) reached the webhook {webhook_id}, but no attempt of that is kept.",
        """
        SELECT o.team_id, o.webhook_id, o.event_id, o.kind
          FROM webhook_outcomes o
          JOIN webhooks w ON w.team_id = o.team_id AND w.id = o.webhook_id AND o.at >= w.since
         WHERE o.status = 'success'
           AND NOT EXISTS (SELECT FROM webhook_attempts a
                            WHERE a.team_id = o.team_id AND a.webhook_id = o.webhook_id
                              AND a.event_id = o.event_id AND a.http_status_code BETWEEN 200 AND 299)
         LIMIT $1
        """,
    ),
    Invariant(
        "delivery_out_of_reach",
        "The event {event_id} ({kind}) is due at {due_at}, so nothing tells it to the webhook {webhook_id}.",
        """
        SELECT d.team_id, d.webhook_id, d.event_id, d.kind, d.due_at::text
          FROM webhook_deliveries d
          LEFT JOIN webhooks w ON w.team_id = d.team_id AND w.id = d.webhook_id
         WHERE d.owner IS NULL AND d.due_at >= '9000-01-01' AND d.restored_due_at IS NULL
           AND w.kind IS DISTINCT FROM 'listener'
         LIMIT $1
        """,
    ),
)
