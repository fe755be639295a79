"""The invariants of broadcasts, their recipients and their content."""

from __future__ import annotations

from pillarbox.broadcasts.queries import JOB_START, JOB_WATCH
from pillarbox.kernel.postgres.invariant import Invariant
from pillarbox.kernel.work.lone_attempts import MOST_BEGUN

INVARIANTS: tuple[Invariant, ...] = (
    Invariant(
        "broadcast_recipients_lost",
        "The broadcast {id} began with {recipients} recipients, and there are rows of {stored}.",
        """
        SELECT b.team_id, b.id, b.recipients, coalesce(r.stored, 0) AS stored
          FROM broadcasts b
          LEFT JOIN (SELECT team_id, broadcast_id, count(*) AS stored
                       FROM broadcast_recipients
                      GROUP BY team_id, broadcast_id) AS r
            ON r.team_id = b.team_id AND r.broadcast_id = b.id
         WHERE b.resolved_at IS NOT NULL AND b.recipients <> coalesce(r.stored, 0)
           AND NOT (b.status <> 'queued'
                    AND EXISTS (SELECT FROM purges p
                                 WHERE p.team_id = b.team_id AND p.before > b.resolved_at))
         LIMIT $1
        """,
    ),
    Invariant(
        "broadcast_recipients_without_start",
        "The broadcast {id} is {status}, and has recipients before it began.",
        """
        SELECT b.team_id, b.id, b.status
          FROM broadcasts b
         WHERE b.resolved_at IS NULL
           AND EXISTS (SELECT FROM broadcast_recipients r
                        WHERE r.team_id = b.team_id AND r.broadcast_id = b.id)
         LIMIT $1
        """,
    ),
    Invariant(
        "broadcast_sent_and_waiting",
        "The broadcast {id} is sent, and the contact {contact_id} still waits for it.",
        """
        SELECT r.team_id, b.id, r.contact_id
          FROM broadcasts b
          JOIN broadcast_recipients r ON r.team_id = b.team_id AND r.broadcast_id = b.id
         WHERE b.status = 'sent' AND r.email_id IS NULL AND r.skipped_for IS NULL
         LIMIT $1
        """,
    ),
    Invariant(
        "broadcast_without_job",
        "The broadcast {id} is {status}, and no job does anything about it.",
        """
        SELECT b.team_id, b.id, b.status
          FROM broadcasts b
         WHERE (b.status = 'scheduled' OR b.status = 'queued')
           AND NOT EXISTS (SELECT FROM jobs j
                            WHERE j.team_id = b.team_id AND j.subject_id = b.id
                              AND j.kind = CASE WHEN b.resolved_at IS NULL THEN $2::text ELSE $3::text END
                              AND (j.owner IS NOT NULL OR j.attempt = j.tries OR j.begun < $4))
         LIMIT $1
        """,
        (JOB_START, JOB_WATCH, MOST_BEGUN),
    ),
    Invariant(
        "broadcast_without_content",
        "The broadcast {id} is being sent, and its content {content_id} is missing.",
        """
        SELECT b.team_id, b.id, b.content_id
          FROM broadcasts b
         WHERE b.status = 'queued' AND b.resolved_at IS NOT NULL
           AND NOT EXISTS (SELECT FROM contents c WHERE c.team_id = b.team_id AND c.id = b.content_id)
         LIMIT $1
        """,
    ),
    Invariant(
        "broadcast_variant_mixed",
        "The copy {email_id} of the broadcast {broadcast_id} is of another variant than {variant}.",
        """
        SELECT r.team_id, r.broadcast_id, r.email_id, r.variant
          FROM broadcast_variants v
          JOIN broadcast_recipients r
            ON r.team_id = v.team_id AND r.broadcast_id = v.broadcast_id AND r.variant = v.number
          JOIN emails e ON e.team_id = r.team_id AND e.id = r.email_id
         WHERE v.content_id IS NOT NULL AND e.content_id IS DISTINCT FROM v.content_id
         LIMIT $1
        """,
    ),
    Invariant(
        "broadcast_variant_missing",
        "The copy {email_id} of the broadcast {broadcast_id}, which has an A/B test, is of no variant.",
        """
        SELECT r.team_id, r.broadcast_id, r.email_id
          FROM broadcasts b
          JOIN broadcast_recipients r ON r.team_id = b.team_id AND r.broadcast_id = b.id
         WHERE r.email_id IS NOT NULL AND r.variant IS NULL
           AND EXISTS (SELECT FROM broadcast_variants v
                        WHERE v.team_id = b.team_id AND v.broadcast_id = b.id AND v.content_id IS NOT NULL)
         LIMIT $1
        """,
    ),
    Invariant(
        "broadcast_recipient_without_email",
        "The copy {email_id} of the broadcast {broadcast_id} is missing, while others of it are there.",
        """
        SELECT r.team_id, r.broadcast_id, r.email_id
          FROM broadcasts b
          JOIN broadcast_recipients r ON r.team_id = b.team_id AND r.broadcast_id = b.id
         WHERE b.status = 'queued' AND r.email_id IS NOT NULL
           AND NOT EXISTS (SELECT FROM emails e WHERE e.team_id = r.team_id AND e.id = r.email_id)
           AND NOT EXISTS (SELECT FROM purges p WHERE p.team_id = b.team_id AND p.before > b.resolved_at)
         LIMIT $1
        """,
    ),
)
