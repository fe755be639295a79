"""The invariants of jobs (`pillarbox.kernel.postgres.invariant`)."""

from __future__ import annotations

from pillarbox.kernel.postgres.invariant import Invariant
from pillarbox.kernel.work.lone_attempts import MOST_BEGUN

INVARIANTS: tuple[Invariant, ...] = (
    Invariant(
        "job_given_up",
        "The job {id} ({kind}) has ended its process {begun} times in a row: it is tried once a day.",
        """
        SELECT team_id, id, kind, begun
          FROM jobs
         WHERE owner IS NULL AND attempt > tries AND begun >= $2
         LIMIT $1
        """,
        (MOST_BEGUN,),
    ),
    Invariant(
        "job_out_of_reach",
        "The job {id} ({kind}) is due at {due_at}, so nothing begins it.",
        """
        SELECT team_id, id, kind, due_at::text
          FROM jobs
         WHERE owner IS NULL AND due_at >= '9000-01-01' AND restored_due_at IS NULL
         LIMIT $1
        """,
    ),
)
