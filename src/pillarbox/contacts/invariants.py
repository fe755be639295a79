"""The invariants of contacts, segments and topics (`pillarbox verify`): there are no foreign keys
(docs/decisions/0060)."""

from __future__ import annotations

from pillarbox.kernel.postgres.invariant import Invariant

INVARIANTS: tuple[Invariant, ...] = (
    Invariant(
        "member_without_contact",
        "The segment {segment_id} has a member {contact_id} that is no contact.",
        """
        SELECT m.team_id, m.segment_id, m.contact_id
          FROM segment_members m
         WHERE NOT EXISTS (SELECT FROM contacts c WHERE c.team_id = m.team_id AND c.id = m.contact_id)
         LIMIT $1
        """,
    ),
    Invariant(
        "engagement_without_contact",
        "Engagement is kept of {contact_id}, which is no contact.",
        """
        SELECT g.team_id, g.contact_id
          FROM contact_engagement g
         WHERE NOT EXISTS (SELECT FROM contacts c WHERE c.team_id = g.team_id AND c.id = g.contact_id)
         LIMIT $1
        """,
    ),
    Invariant(
        "terms_without_contact",
        "Terms are kept of {contact_id}, which is no contact.",
        """
        SELECT t.team_id, t.contact_id
          FROM contact_terms t
         WHERE NOT EXISTS (SELECT FROM contacts c WHERE c.team_id = t.team_id AND c.id = t.contact_id)
         LIMIT $1
        """,
    ),
    Invariant(
        "event_without_contact",
        "The event {name} is kept of {contact_id}, which is no contact.",
        """
        SELECT e.team_id, e.name, e.contact_id
          FROM contact_events e
         WHERE NOT EXISTS (SELECT FROM contacts c WHERE c.team_id = e.team_id AND c.id = e.contact_id)
         LIMIT $1
        """,
    ),
    Invariant(
        "choice_without_contact",
        "A choice of the topic {topic_id} is that of {contact_id}, which is no contact.",
        """
        SELECT t.team_id, t.topic_id, t.contact_id
          FROM topic_choices t
         WHERE NOT EXISTS (SELECT FROM contacts c WHERE c.team_id = t.team_id AND c.id = t.contact_id)
         LIMIT $1
        """,
    ),
    Invariant(
        "choice_without_topic",
        "The contact {contact_id} chose {topic_id}, which is no topic.",
        """
        SELECT c.team_id, c.topic_id, c.contact_id
          FROM topic_choices c
         WHERE NOT EXISTS (SELECT FROM topics t WHERE t.team_id = c.team_id AND t.id = c.topic_id)
         LIMIT $1
        """,
    ),
)
