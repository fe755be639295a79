"""The invariants between events and the jobs of their partitions."""

from __future__ import annotations

from pillarbox.events.partitions import JOB
from pillarbox.kernel.postgres.invariant import Invariant
from pillarbox.kernel.work.lone_attempts import MOST_BEGUN

INVARIANTS: tuple[Invariant, ...] = (
    Invariant(
        "event_without_job",
        "The event {id} waits in the partition {partition}, and no job distributes it.",
        """
        SELECT e.team_id, e.id, e.partition
          FROM events e
         WHERE e.failed_at IS NULL
           AND NOT EXISTS (SELECT FROM jobs j
                            WHERE j.team_id = e.team_id AND j.kind = $2
                              AND j.subject_id = lpad(to_hex(e.partition::integer), 32, '0')::uuid
                              AND (j.owner IS NOT NULL OR j.attempt = j.tries OR j.begun < $3))
         LIMIT $1
        """,
        (JOB, MOST_BEGUN),
    ),
    Invariant(
        "event_in_two_partitions",
        "Events for one contact wait in the partitions {partition} and {other}, the event {id} among them.",
        """
        SELECT e.team_id, e.id, e.partition, o.other
          FROM events e
          JOIN (SELECT team_id, address, min(partition) AS other
                  FROM events
                 GROUP BY team_id, address
                HAVING min(partition) < max(partition)) AS o
            ON o.team_id = e.team_id AND o.address = e.address AND o.other < e.partition
         LIMIT $1
        """,
    ),
)
