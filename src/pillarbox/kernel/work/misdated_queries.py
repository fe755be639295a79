"""Jobs of teams that a clock ahead of time has made due: they would come too late, with all that waits behind
them.

Each job may come early: its handler looks itself whether it is time, and puts the job off again. So all of
them are made due. Periodic jobs have a rule of their own (`periodic.bring_forward`).
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from pillarbox.kernel.postgres.database import Source
from pillarbox.kernel.work.claim_queries import GIVEN_UP_GAP
from pillarbox.kernel.work.collectors import changed
from pillarbox.kernel.work.lone_attempts import ALONE_FROM, MOST_BEGUN, PAUSES
from pillarbox.kernel.work.periodic import NO_TEAM

# Across teams: the clock was the same for all of them. What ends its processes keeps its pause. What a
# restore has put aside stays there.
MISDATED: Final = """
    UPDATE jobs
       SET due_at = CASE WHEN attempt = tries OR begun < $3 THEN $1::timestamptz
                         WHEN begun < $4 THEN least(due_at, $1::timestamptz + $5::interval)
                         ELSE least(due_at, $1::timestamptz + $6::interval) END
     WHERE team_id <> $2 AND owner IS NULL AND due_at > $1 AND restored_due_at IS NULL
"""


async def misdated_jobs(source: Source, now: datetime) -> int:
    """Make jobs of teams due that are due after `now`; returns how many."""
    rule = ALONE_FROM, MOST_BEGUN, PAUSES[ALONE_FROM], GIVEN_UP_GAP
    return changed(await source.execute(MISDATED, now, NO_TEAM, *rule))
