"""The invariants of mail that was sent from inboxes (`pillarbox verify`)."""

from __future__ import annotations

from pillarbox.kernel.postgres.invariant import Invariant

INVARIANTS: tuple[Invariant, ...] = (
    Invariant(
        "email_without_message",
        "The email {id} was sent from the inbox {inbox_id}, which has no message of it.",
        """
        SELECT e.team_id, e.id, e.inbox_id
          FROM emails e
          JOIN inboxes i ON i.team_id = e.team_id AND i.id = e.inbox_id
         WHERE NOT EXISTS (SELECT FROM inbox_messages m
                            WHERE m.team_id = e.team_id AND m.inbox_id = e.inbox_id AND m.id = e.id)
         LIMIT $1
        """,
    ),
    Invariant(
        "email_of_two_drafts",
        "The email {email_id} was made of {drafts} drafts.",
        """
        SELECT d.team_id, d.email_id, count(*) AS drafts
          FROM inbox_drafts d
         WHERE d.email_id IS NOT NULL
         GROUP BY d.team_id, d.email_id
        HAVING count(*) > 1
         LIMIT $1
        """,
    ),
)
