"""Work that was accepted by a clock that was ahead, and is therefore due too late.

What was to be sent at once and has not been begun is made due. What is scheduled stays: the API has
answered its instant, and whether that was given or computed from a wrong `now` is not known any more. A
retry is late by as much as the clock was ahead, at most.
"""

from __future__ import annotations

from datetime import datetime

from pillarbox.kernel.postgres.database import Source
from pillarbox.kernel.work.collectors import changed

# Across teams: the clock was the same for all of them. What waits for its files is due in another time.
MISDATED = """
    UPDATE deliveries
       SET due_at = $1
     WHERE owner IS NULL AND due_at > $1 AND created_at > $1 AND released AND attempt = 0
       AND due_at < created_at + interval '1 minute'
"""


async def misdated_items(source: Source, now: datetime) -> int:
    """Make due what was accepted after `now` and should have begun; returns how many items."""
    return changed(await source.execute(MISDATED, now))
