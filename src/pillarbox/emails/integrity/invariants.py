"""The invariants between the rows of an email, as a table (DUR-14).

Every statement finds the rows that break one sentence. All of them look across teams, for the operator's
`pillarbox verify` alone; `$1` is how many rows are wanted. They are true at every commit, so one snapshot
of a running installation breaks none of them.
"""

from __future__ import annotations

from pillarbox.delivery.items import UNTIL_FETCHED
from pillarbox.emails.rows import JOB_FETCH
from pillarbox.kernel.postgres.invariant import Invariant
from pillarbox.timeline.rules import OPEN, RULES, STATES

SEND, SEND_BATCH = "POST /emails", "POST /emails/batch"
"""Idempotency scopes whose answers name emails."""

STILL_OPEN = sorted(OPEN)
ENDS = sorted({kind for kind, rule in RULES.items() if rule.moves} - OPEN)
"""Events of one recipient that are no longer open; `canceled` is an event of the whole email."""

IN_ORDER = [kind.value for kind in STATES]


INVARIANTS: tuple[Invariant, ...] = (
    Invariant(
        "email_without_content",
        "The email's content {content_id} is missing.",
        """
        SELECT e.team_id, e.id AS email_id, e.content_id
          FROM emails e
         WHERE NOT EXISTS (SELECT FROM contents c WHERE c.team_id = e.team_id AND c.id = e.content_id)
         LIMIT $1
        """,
    ),
    Invariant(
        "email_without_recipients",
        "The email has no recipients.",
        """
        SELECT e.team_id, e.id AS email_id
          FROM emails e
         WHERE NOT EXISTS (SELECT FROM recipients r WHERE r.team_id = e.team_id AND r.email_id = e.id)
         LIMIT $1
        """,
    ),
    Invariant(
        "email_without_opening",
        "The email's history has no entry of its acceptance.",
        """
        SELECT e.team_id, e.id AS email_id
          FROM emails e
         WHERE NOT EXISTS (SELECT FROM timeline t
                            WHERE t.team_id = e.team_id AND t.email_id = e.id AND t.position IS NULL
                              AND t.kind = CASE WHEN e.scheduled_at IS NULL THEN 'queued'
                                                ELSE 'scheduled' END)
         LIMIT $1
        """,
    ),
    Invariant(
        "recipient_without_email",
        "The recipient at position {position} belongs to an email that is missing.",
        """
        SELECT r.team_id, r.email_id, r.position
          FROM recipients r
         WHERE NOT EXISTS (SELECT FROM emails e WHERE e.team_id = r.team_id AND e.id = r.email_id)
         LIMIT $1
        """,
    ),
    Invariant(
        "recipient_without_work",
        "The recipient at position {position} is {state}, but no work item carries group {grp}.",
        """
        SELECT r.team_id, r.email_id, r.position, r.state, r.grp
          FROM recipients r
         WHERE r.state = ANY ($2::text[])
           AND NOT EXISTS (SELECT FROM deliveries d
                            WHERE d.team_id = r.team_id AND d.email_id = r.email_id AND d.grp = r.grp)
         LIMIT $1
        """,
        (STILL_OPEN,),
    ),
    Invariant(
        "recipient_differs_from_history",
        "The recipient at position {position} is {state}, but its history says otherwise ({history}).",
        """
        WITH own AS (
            SELECT team_id, email_id, position, array_agg(kind) AS kinds,
                   bool_or(kind = 'sent') AS sent, bool_or(kind = 'delivery_delayed') AS delayed,
                   bool_or(kind = 'bounced') AS bounced, bool_or(kind = 'complained') AS complained,
                   bool_or(kind = 'unsubscribed') AS unsubscribed
              FROM timeline
             WHERE position IS NOT NULL
             GROUP BY team_id, email_id, position
        ), whole AS (
            SELECT team_id, email_id,
                   bool_or(kind = 'canceled') AS canceled, bool_or(kind = 'queued') AS queued
              FROM timeline
             WHERE position IS NULL
             GROUP BY team_id, email_id
        )
        SELECT r.team_id, r.email_id, r.position, r.state,
               coalesce(array_to_string(own.kinds, ', '), 'nothing of its own') AS history
          FROM recipients r
          JOIN whole ON whole.team_id = r.team_id AND whole.email_id = r.email_id
          LEFT JOIN own
                 ON own.team_id = r.team_id AND own.email_id = r.email_id AND own.position = r.position
         WHERE NOT CASE WHEN own.kinds && $2::text[] THEN r.state = ANY (own.kinds) AND r.state = ANY ($2)
                        WHEN own.delayed THEN r.state = 'delivery_delayed'
                        WHEN own.sent THEN r.state = 'sent'
                        WHEN whole.canceled THEN r.state = 'canceled'
                        WHEN whole.queued THEN r.state = 'queued'
                        ELSE r.state = 'scheduled' END
            OR (r.sent_at IS NOT NULL) <> coalesce(own.sent, false)
            OR (r.delayed_at IS NOT NULL) <> coalesce(own.delayed, false)
            OR (r.bounce_type IS NOT NULL) <> coalesce(own.bounced, false)
            OR (r.complained_at IS NOT NULL) <> coalesce(own.complained, false)
            OR (r.unsubscribed_at IS NOT NULL) <> coalesce(own.unsubscribed, false)
         LIMIT $1
        """,
        (ENDS,),
    ),
    # The latest event decides, at the same instant the later kind, and what the email began with never stands
    # behind anything, whatever the clock said; a `sent` that comes after a delay of the same recipient is
    # bookkeeping, and so is a delay that is only repeated.
    Invariant(
        "last_event_differs_from_history",
        "The email's last event is {last_event}, but its history says {kind}.",
        """
        WITH latest AS (
            SELECT DISTINCT ON (t.team_id, t.email_id) t.team_id, t.email_id, t.kind, t.at
              FROM timeline t
              LEFT JOIN recipients r
                     ON r.team_id = t.team_id AND r.email_id = t.email_id AND r.position = t.position
             WHERE (t.detail->>'repeated' = 'true') IS NOT TRUE
               AND t.kind <> 'unsubscribed'
               AND (t.kind = 'sent' AND r.delayed_at < t.at) IS NOT TRUE
               AND NOT (t.kind = 'scheduled'
                        AND EXISTS (SELECT FROM timeline moved
                                     WHERE moved.team_id = t.team_id AND moved.email_id = t.email_id
                                       AND moved.position IS NULL AND moved.kind IN ('queued', 'canceled')))
             ORDER BY t.team_id, t.email_id, t.kind NOT IN ('queued', 'scheduled') DESC, t.at DESC,
                      array_position($2::text[], t.kind) DESC
        )
        SELECT e.team_id, e.id AS email_id, e.last_event, latest.kind
          FROM emails e
          JOIN latest ON latest.team_id = e.team_id AND latest.email_id = e.id
         WHERE (e.last_event, e.last_event_at) IS DISTINCT FROM (latest.kind, latest.at)
         LIMIT $1
        """,
        (IN_ORDER,),
    ),
    Invariant(
        "history_without_email",
        "The history entry {id} ({kind}) belongs to an email that is missing.",
        """
        SELECT t.team_id, t.email_id, t.id, t.kind
          FROM timeline t
         WHERE NOT EXISTS (SELECT FROM emails e WHERE e.team_id = t.team_id AND e.id = t.email_id)
         LIMIT $1
        """,
    ),
    Invariant(
        "history_without_recipient",
        "The history entry {id} ({kind}) is about position {position}, where there is no recipient.",
        """
        SELECT t.team_id, t.email_id, t.id, t.kind, t.position
          FROM timeline t
         WHERE t.position IS NOT NULL
           AND NOT EXISTS (SELECT FROM recipients r
                            WHERE r.team_id = t.team_id AND r.email_id = t.email_id
                              AND r.position = t.position)
         LIMIT $1
        """,
    ),
    Invariant(
        "work_without_email",
        "The work item of group {grp} ({destination}) belongs to an email that is missing.",
        """
        SELECT d.team_id, d.email_id, d.grp, d.destination
          FROM deliveries d
         WHERE NOT EXISTS (SELECT FROM emails e WHERE e.team_id = d.team_id AND e.id = d.email_id)
         LIMIT $1
        """,
    ),
    Invariant(
        "work_without_open_recipient",
        "The work item of group {grp} ({destination}) has nobody left to deliver to.",
        """
        SELECT d.team_id, d.email_id, d.grp, d.destination
          FROM deliveries d
         WHERE NOT EXISTS (SELECT FROM recipients r
                            WHERE r.team_id = d.team_id AND r.email_id = d.email_id AND r.grp = d.grp
                              AND r.state = ANY ($2::text[]))
         LIMIT $1
        """,
        (STILL_OPEN,),
    ),
    Invariant(
        "work_without_fetch",
        "The work item of group {grp} waits for an attachment, but nothing fetches it.",
        """
        SELECT d.team_id, d.email_id, d.grp
          FROM deliveries d
         WHERE d.due_at = $2
           AND NOT EXISTS (SELECT FROM jobs j
                            WHERE j.team_id = d.team_id AND j.kind = $3 AND j.subject_id = d.email_id)
         LIMIT $1
        """,
        (UNTIL_FETCHED, JOB_FETCH),
    ),
    Invariant(
        "attachment_missing",
        "The content {id} has {wanted} attachments, of which {stored} are stored.",
        """
        SELECT c.team_id, e.id AS email_id, c.id, c.attachments AS wanted, count(a.id) AS stored
          FROM contents c
          LEFT JOIN attachments a ON a.team_id = c.team_id AND a.content_id = c.id
          LEFT JOIN emails e ON e.team_id = c.team_id AND e.id = c.id
         GROUP BY c.team_id, c.id, e.id
        HAVING count(a.id) <> c.attachments
         LIMIT $1
        """,
    ),
    Invariant(
        "attachment_without_content",
        "The attachment {id} belongs to the content {content_id}, which is missing.",
        """
        SELECT a.team_id, a.id, a.content_id
          FROM attachments a
         WHERE NOT EXISTS (SELECT FROM contents c WHERE c.team_id = a.team_id AND c.id = a.content_id)
         LIMIT $1
        """,
    ),
    Invariant(
        "attachment_without_bytes",
        "The attachment {id} should have {size} bytes, but they are not there.",
        """
        SELECT a.team_id, e.id AS email_id, a.id, a.content_id, a.size
          FROM attachments a
          LEFT JOIN emails e ON e.team_id = a.team_id AND e.id = a.content_id
         WHERE a.blob IS NULL
           AND (a.url IS NULL OR a.size IS NOT NULL)
           AND octet_length(a.data) IS DISTINCT FROM a.size
         LIMIT $1
        """,
    ),
    Invariant(
        "answer_without_email",
        "The answer kept for the idempotency key {key!r} names the email {email_id}, which is missing.",
        """
        SELECT k.team_id, answer.email_id, k.scope, k.key
          FROM idempotency_keys k
         CROSS JOIN LATERAL (
               SELECT (convert_from(k.body, 'UTF8')::jsonb->>'id')::uuid AS email_id
                WHERE k.scope = $2
               UNION ALL
               SELECT (item->>'id')::uuid
                 FROM jsonb_array_elements(CASE WHEN k.scope = $3
                                                THEN convert_from(k.body, 'UTF8')::jsonb->'data' END) AS item
               ) AS answer
         WHERE k.status = 200
           AND NOT EXISTS (SELECT FROM emails e WHERE e.team_id = k.team_id AND e.id = answer.email_id)
         LIMIT $1
        """,
        (SEND, SEND_BATCH),
    ),
)
