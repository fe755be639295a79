"""SQL of the leases on deliveries: renewing them, giving them back, and freeing those of a dead process."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from pillarbox.kernel.postgres.database import Source
from pillarbox.webhooks.dispatch.deliveries import Key

# A row that a settle holds is skipped: it is about to be settled.
# A renewal that comes late shortens no lease; one after a step back of the clock does (DUR-09).
RENEW = """
    UPDATE webhook_deliveries d
       SET leased_until = CASE WHEN d.leased_until > $7 THEN $6 ELSE greatest(d.leased_until, $6) END
      FROM (SELECT d.team_id, d.webhook_id, d.event_id, d.replay
              FROM unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::uuid[])
                   AS k (team_id, webhook_id, event_id, replay)
              JOIN webhook_deliveries d ON d.team_id = k.team_id AND d.webhook_id = k.webhook_id
               AND d.event_id = k.event_id AND d.replay = k.replay
             WHERE d.owner = $5
               FOR UPDATE OF d SKIP LOCKED) AS mine
     WHERE d.team_id = mine.team_id AND d.webhook_id = mine.webhook_id AND d.event_id = mine.event_id
       AND d.replay = mine.replay
    RETURNING d.team_id, d.webhook_id, d.event_id, d.replay
"""

# Nothing was sent of these, or nothing is known of it; they are due as they were, or from $6 on.
GIVE_BACK = """
    UPDATE webhook_deliveries d
       SET owner = NULL, leased_until = NULL, due_at = greatest(d.due_at, $6)
      FROM unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::uuid[])
           AS k (team_id, webhook_id, event_id, replay)
     WHERE d.team_id = k.team_id AND d.webhook_id = k.webhook_id AND d.event_id = k.event_id
       AND d.replay = k.replay AND d.owner = $5
"""

# Across teams: whether somebody holds deliveries, or some are due (`kernel.work.queue_poll`). Where more than
# 200 wait it is not looked which: the dispatcher finds out.
IS_BUSY = """
    SELECT EXISTS (SELECT FROM webhook_deliveries WHERE owner IS NOT NULL)
        OR (SELECT count(*) = 200 OR min(due_at) <= $1
              FROM (SELECT due_at FROM webhook_deliveries WHERE owner IS NULL LIMIT 200) AS waiting)
"""

# Across teams: who holds deliveries, and when the first and the last of a holder's leases end. Two index
# descents for each holder. One that is not in the table `processes` is dead.
HOLDERS = """
    WITH RECURSIVE holders AS (
        (SELECT owner, leased_until
           FROM webhook_deliveries
          WHERE owner IS NOT NULL
          ORDER BY owner, leased_until
          LIMIT 1)
        UNION ALL
        SELECT next.owner, next.leased_until
          FROM holders
         CROSS JOIN LATERAL (
               SELECT owner, leased_until FROM webhook_deliveries
                WHERE owner IS NOT NULL AND owner > holders.owner
                ORDER BY owner, leased_until
                LIMIT 1) AS next
    )
    SELECT h.owner, h.leased_until AS first, latest.leased_until AS last, p.id IS NOT NULL AS known, p.host,
           p.pid, p.pid_start
      FROM holders h
     CROSS JOIN LATERAL (
           SELECT d.leased_until
             FROM webhook_deliveries d
            WHERE d.owner IS NOT NULL AND d.owner = h.owner
            ORDER BY d.owner DESC, d.leased_until DESC
            LIMIT 1) AS latest
      LEFT JOIN processes p ON p.id = h.owner
"""

# Across teams: deliveries whose holder is dead ($2 in the far future) or went silent.
FREE = """
    WITH lost AS MATERIALIZED (
        SELECT team_id, webhook_id, event_id, replay
          FROM webhook_deliveries
         WHERE owner IS NOT NULL AND owner = $1 AND leased_until <= $2
         ORDER BY owner, leased_until
         LIMIT $3
           FOR UPDATE SKIP LOCKED
    )
    UPDATE webhook_deliveries d
       SET owner = NULL, leased_until = NULL
      FROM lost
     WHERE d.team_id = lost.team_id AND d.webhook_id = lost.webhook_id AND d.event_id = lost.event_id
       AND d.replay = lost.replay
"""


class DeliveryHolder(NamedTuple):
    """A process that holds leases, from the `first` that ends to the `last`; `known` where it is in the
    register."""

    owner: UUID
    first: datetime
    last: datetime
    known: bool
    host: str | None
    pid: int | None
    pid_start: int | None


async def renew(
    conn: Source, keys: Sequence[Key], owner: UUID, until: datetime, latest: datetime
) -> set[Key]:
    """Let these leases end at `until`, or later where they already do, but not after `latest`; returns those
    that were renewed."""
    rows = await conn.fetch(RENEW, *zip(*sorted(keys), strict=True), owner, until, latest)
    return {(row[0], row[1], row[2], row[3]) for row in rows}


async def give_back(conn: Source, keys: Sequence[Key], owner: UUID, earliest: datetime | None) -> None:
    """Free deliveries; they are not due before `earliest`."""
    await conn.execute(GIVE_BACK, *zip(*sorted(keys), strict=True), owner, earliest)


async def holders(conn: Source) -> list[DeliveryHolder]:
    """Everybody who holds leases."""
    return [DeliveryHolder(*row) for row in await conn.fetch(HOLDERS)]


async def free(conn: Source, owner: UUID, until: datetime, limit: int = 2000) -> int:
    """Free deliveries of this holder whose lease ends until then; returns how many."""
    status: str = await conn.execute(FREE, owner, until, limit)
    return int(status.rsplit(" ", 1)[-1])
