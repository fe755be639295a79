"""What must hold between topics and what contacts chose of them: there are no foreign keys."""

from __future__ import annotations

from pillarbox.kernel.postgres.invariant import Invariant

INVARIANTS: tuple[Invariant, ...] = (
    Invariant(
        "choice_without_topic",
        "The contact {contact_id} chose {subscription} of the topic {topic_id}, which is not there.",
        """
        SELECT c.team_id, c.contact_id, c.topic_id, c.subscription
          FROM topic_choices c
         WHERE NOT EXISTS (SELECT FROM topics t WHERE t.team_id = c.team_id AND t.id = c.topic_id)
         LIMIT $1
        """,
    ),
    Invariant(
        "choice_without_contact",
        "The topic {topic_id} was chosen ({subscription}) by the contact {contact_id}, who is not there.",
        """
        SELECT c.team_id, c.contact_id, c.topic_id, c.subscription
          FROM topic_choices c
         WHERE NOT EXISTS (SELECT FROM contacts p WHERE p.team_id = c.team_id AND p.id = c.contact_id)
         LIMIT $1
        """,
    ),
)
