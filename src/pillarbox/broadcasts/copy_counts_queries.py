"""Counts the events of a broadcast's copies so far, from the same rows as its metrics."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.timeline.levels import DAY, FINE
from pillarbox.usage.windows import day_of


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyCounts:
    """Copies, as the metrics count them."""

    received: int
    sent: int
    delivered: int
    bounced: int
    complained: int
    suppressed: int
    failed: int
    opened: int
    clicked: int
    unsubscribed: int


NO_COPIES: Final = CopyCounts(
    received=0,
    sent=0,
    delivered=0,
    bounced=0,
    complained=0,
    suppressed=0,
    failed=0,
    opened=0,
    clicked=0,
    unsubscribed=0,
)


async def since_start(db: TeamDb, broadcast_id: UUID, started: datetime) -> CopyCounts:
    """Return the counts since the day on which the broadcast began."""
    return await _sums(db, broadcast_id, DAY, day_of(started))


async def lately(db: TeamDb, broadcast_id: UUID, since: datetime) -> CopyCounts:
    """Return the counts since `since`, to within ten seconds. Of an earlier `since` only the last two days
    are counted."""
    return await _sums(db, broadcast_id, FINE, since)


async def _sums(db: TeamDb, broadcast_id: UUID, level: int, since: datetime) -> CopyCounts:
    """Return the sums of the rollups and of what is not folded into them yet, in one snapshot."""
    found = await db.one(
        CopyCounts,
        """
        SELECT coalesce(sum(received), 0)::bigint AS received, coalesce(sum(sent), 0)::bigint AS sent,
               coalesce(sum(delivered), 0)::bigint AS delivered, coalesce(sum(bounced_transient +
               bounced_permanent + bounced_undetermined), 0)::bigint AS bounced, coalesce(sum(complained),
               0)::bigint AS complained, coalesce(sum(suppressed), 0)::bigint AS suppressed,
               coalesce(sum(failed), 0)::bigint AS failed, coalesce(sum(unique_opened), 0)::bigint AS opened,
               coalesce(sum(unique_clicked), 0)::bigint AS clicked, coalesce(sum(unsubscribed), 0)::bigint AS
               unsubscribed
          FROM (SELECT received, sent, delivered, bounced_transient, bounced_permanent, bounced_undetermined,
                       complained, suppressed, failed, unique_opened, unique_clicked, unsubscribed
                  FROM rollups
                 WHERE team_id = $1 AND level = $3 AND start >= $4 AND broadcast_id = $2
                UNION ALL
                SELECT received, sent, delivered, bounced_transient, bounced_permanent, bounced_undetermined,
                       complained, suppressed, failed, unique_opened, unique_clicked, unsubscribed
                  FROM metric_increments
                 WHERE team_id = $1 AND broadcast_id = $2 AND start >= $4) AS counted
        """,
        broadcast_id,
        level,
        since,
    )
    assert found is not None, "sums have a row"
    return found
