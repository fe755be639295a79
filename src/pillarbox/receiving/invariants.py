"""The invariants of the rows of a received email (`pillarbox.kernel.postgres.invariant`)."""

from __future__ import annotations

from pillarbox.kernel.postgres.invariant import Invariant

INVARIANTS: tuple[Invariant, ...] = (
    Invariant(
        "received_without_message",
        "The received email {id} has no message, or its message has no email.",
        """
        SELECT team_id, id
          FROM received_emails e
          FULL JOIN received_sources s USING (team_id, id)
         WHERE e.created_at IS NULL OR s.trace IS NULL
         LIMIT $1
        """,
    ),
    Invariant(
        "received_attachments_differ",
        "The received email {id} has {wanted} attachments, of which {stored} are stored.",
        """
        SELECT e.team_id, e.id, e.attachments AS wanted, count(a.id) AS stored
          FROM received_emails e
          LEFT JOIN received_attachments a ON a.team_id = e.team_id AND a.email_id = e.id
         GROUP BY e.team_id, e.id
        HAVING count(a.id) <> e.attachments
         LIMIT $1
        """,
    ),
)
