"""The invariants of the suppression list (`pillarbox.kernel.postgres.invariant`)."""

from __future__ import annotations

from pillarbox.kernel.postgres.invariant import Invariant

INVARIANTS: tuple[Invariant, ...] = (
    # No recipient is looked up by such an address, so mail would go out to it. Letters that are not ASCII are
    # left aside: the database does not put all of them in lower case as the product does.
    Invariant(
        "suppression_not_comparable",
        "The suppression {id} has an address in a form that no recipient is compared with.",
        """
        SELECT s.team_id, s.id
          FROM suppressions s
         WHERE s.address ~ '[A-Z]' OR s.address !~ '^.+@[a-z0-9.-]+$'
         LIMIT $1
        """,
    ),
    Invariant(
        "manual_suppression_with_source",
        "The suppression {id} is manual and names the email {email_id} as its cause.",
        """
        SELECT s.team_id, s.id, s.source_id AS email_id
          FROM suppressions s
         WHERE s.origin = 'manual' AND s.source_id IS NOT NULL
         LIMIT $1
        """,
    ),
    # An email that was removed with age says nothing any more.
    Invariant(
        "suppression_without_cause",
        "The suppression {id} is there for a {origin} that its email {email_id} does not show.",
        """
        SELECT s.team_id, s.id, s.source_id AS email_id, s.origin
          FROM suppressions s
          JOIN emails e ON e.team_id = s.team_id AND e.id = s.source_id
         WHERE s.origin <> 'manual'
           AND NOT EXISTS (SELECT FROM recipients r
                            WHERE r.team_id = s.team_id AND r.email_id = s.source_id
                              AND r.address = s.address
                              AND CASE s.origin WHEN 'bounce' THEN r.bounce_type = 'Permanent'
                                                ELSE r.complained_at IS NOT NULL END)
         LIMIT $1
        """,
    ),
)
