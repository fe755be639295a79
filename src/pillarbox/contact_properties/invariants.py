"""The invariants of properties and their values (`pillarbox verify`)."""

from __future__ import annotations

from pillarbox.kernel.postgres.invariant import Invariant

INVARIANTS: tuple[Invariant, ...] = (
    Invariant(
        "value_without_property",
        "The contact {contact_id} has a value under the number {number}, which is no property's.",
        """
        SELECT c.team_id, c.id AS contact_id, v.number
          FROM contacts c
         CROSS JOIN LATERAL jsonb_object_keys(c.properties) AS v (number)
         WHERE c.properties <> '{}'
           AND NOT EXISTS (SELECT FROM contact_properties p
                            WHERE p.team_id = c.team_id AND p.number::text = v.number)
         LIMIT $1
        """,
    ),
    Invariant(
        "value_of_another_type",
        "The contact {contact_id} has a value of the property {key} that is no {type}.",
        """
        SELECT c.team_id, c.id AS contact_id, p.key, p.type
          FROM contacts c
         CROSS JOIN LATERAL jsonb_each(c.properties) AS v (number, value)
          JOIN contact_properties p ON p.team_id = c.team_id AND p.number::text = v.number
         WHERE c.properties <> '{}' AND jsonb_typeof(v.value) <> p.type
         LIMIT $1
        """,
    ),
    Invariant(
        "deleted_property_without_job",
        "The property {property_id} was deleted, and nothing removes its values.",
        """
        SELECT p.team_id, p.id AS property_id
          FROM contact_properties p
         WHERE p.deleted_at IS NOT NULL
           AND NOT EXISTS (SELECT FROM jobs j
                            WHERE j.team_id = p.team_id AND j.kind = 'contact_properties.remove'
                              AND j.subject_id = p.id)
         LIMIT $1
        """,
    ),
)
