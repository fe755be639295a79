"""The invariants between segments and their members: there are no foreign keys (docs/decisions/0060)."""

from __future__ import annotations

from pillarbox.kernel.postgres.invariant import Invariant
from pillarbox.segments.queries import JOB_REMOVE

INVARIANTS: tuple[Invariant, ...] = (
    Invariant(
        "member_without_segment",
        "The contact {contact_id} belongs to the segment {segment_id}, which is gone, and no job ends that.",
        """
        SELECT m.team_id, m.segment_id, m.contact_id
          FROM segment_members m
         WHERE NOT EXISTS (SELECT FROM segments s WHERE s.team_id = m.team_id AND s.id = m.segment_id)
           AND NOT EXISTS (SELECT FROM jobs j
                            WHERE j.team_id = m.team_id AND j.kind = $2 AND j.subject_id = m.segment_id)
         LIMIT $1
        """,
        (JOB_REMOVE,),
    ),
)
