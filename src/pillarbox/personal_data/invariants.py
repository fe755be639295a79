"""The invariants of erasures (`pillarbox.kernel.postgres.invariant`)."""

from __future__ import annotations

from pillarbox.kernel.postgres.invariant import Invariant

INVARIANTS: tuple[Invariant, ...] = (
    Invariant(
        "erasure_without_job",
        "The erasure {id} is not done, and no job goes on with it.",
        """
        SELECT e.team_id, e.id
          FROM erasures e
         WHERE e.completed_at IS NULL
           AND NOT EXISTS (SELECT FROM jobs j
                            WHERE j.team_id = e.team_id AND j.kind = 'personal_data.erase'
                                AND j.subject_id = e.id)
         LIMIT $1
        """,
    ),
)
