"""Work of runs, and triggers, that a clock ahead of time has dated: they would come too late."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from pillarbox.kernel.postgres.database import Source, transaction
from pillarbox.kernel.work.collectors import changed

# Across teams: the clock was the same for all of them. What was tried again, or lost its process, waits for
# five minutes at most. What a restore has put aside stays there.
STEPS: Final = """
    UPDATE automation_work
       SET due_at = $1, failing_since = CASE WHEN failing_since > $1 THEN $1 ELSE failing_since END
     WHERE owner IS NULL AND NOT waiting AND due_at > $1 AND restored_due_at IS NULL
       AND ((failing_since IS NULL AND begun < 2) OR due_at > $1::timestamptz + interval '5 minutes')
"""

# Across teams, as above. A delay or wait that began ahead of time begins now, so that it lasts as long as it
# should, and the events that come now count for it.
WAITS: Final = """
    WITH ahead AS MATERIALIZED (
        SELECT w.team_id, w.run_id, w.position, s.started_at
          FROM automation_work w
          JOIN automation_steps s
            ON s.team_id = w.team_id AND s.run_id = w.run_id AND s.position = w.position
         WHERE w.owner IS NULL AND w.waiting AND w.due_at > $1 AND w.restored_due_at IS NULL
           AND s.started_at > $1
           FOR UPDATE OF w SKIP LOCKED
    ), steps AS (
        UPDATE automation_steps s
           SET started_at = $1
          FROM ahead a
         WHERE s.team_id = a.team_id AND s.run_id = a.run_id AND s.position = a.position
    )
    UPDATE automation_work w
       SET due_at = $1::timestamptz + (w.due_at - a.started_at),
           waits_from = CASE WHEN w.waits_from > $1 THEN $1 ELSE w.waits_from END
      FROM ahead a
     WHERE w.team_id = a.team_id AND w.run_id = a.run_id AND w.position = a.position
"""

# Across teams, as above: an automation that was enabled is enabled.
TRIGGERS: Final = """
    UPDATE automation_triggers SET enabled_at = $1 WHERE enabled_at > $1
"""


async def misdated_steps(source: Source, now: datetime) -> int:
    """Correct steps, delays, waits and triggers that are dated after `now`; returns how many."""
    total = 0
    async with transaction(source) as conn:
        for statement in (STEPS, WAITS, TRIGGERS):
            total += changed(await conn.execute(statement, now))
    return total
