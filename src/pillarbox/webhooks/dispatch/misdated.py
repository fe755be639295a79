"""Deliveries of events that a clock ahead of time has dated: their first attempt would come too late."""

from __future__ import annotations

from datetime import datetime

from pillarbox.kernel.postgres.database import Source
from pillarbox.kernel.work.collectors import changed

# Across teams: the clock was the same for all of them. What a listener reads is never due, and what a restore
# has put aside stays there.
MISDATED = """
    UPDATE webhook_deliveries
       SET due_at = $1
     WHERE owner IS NULL AND due_at > $1 AND at > $1 AND tries = 0 AND due_at < 'infinity'
       AND restored_due_at IS NULL
"""


async def misdated_deliveries(source: Source, now: datetime) -> int:
    """Make first attempts due whose event is dated after `now`; returns how many."""
    return changed(await source.execute(MISDATED, now))
