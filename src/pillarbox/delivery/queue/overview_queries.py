"""SQL of the queue as the operator sees it (`overview`)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime
from uuid import UUID

from pillarbox.delivery.items import QUARANTINED, UNTIL_FETCHED
from pillarbox.delivery.queue.overview import QueueFilter, QueueGroup, Totals, WaitingItem
from pillarbox.kernel.postgres.database import Connection, Source
from pillarbox.kernel.work.lone_attempts import MOST_BEGUN

RETRY_BATCH = 5000
PREFETCH = 500
ALIVE_SECONDS = 30

# Across teams: the operator's view of the whole queue; a team, a destination or an email narrows it.
TOTALS = """
    SELECT count(*) AS items,
           count(*) FILTER (WHERE condition = 'working') AS working,
           count(*) FILTER (WHERE condition = 'fetching') AS fetching,
           count(*) FILTER (WHERE condition = 'quarantined') AS quarantined,
           count(*) FILTER (WHERE condition = 'scheduled') AS scheduled,
           count(*) FILTER (WHERE condition = 'retry') AS retry,
           count(*) FILTER (WHERE condition = 'paused') AS paused,
           count(*) FILTER (WHERE condition = 'due') AS due,
           count(DISTINCT (team_id, destination)) AS destinations, min(created_at) AS oldest
      FROM (SELECT d.team_id, d.destination, d.created_at,
                   CASE WHEN d.owner IS NOT NULL THEN 'working'
                        WHEN d.due_at = $5 THEN 'fetching'
                        WHEN d.due_at = $6 THEN 'quarantined'
                        WHEN d.due_at > $4 AND NOT d.released THEN 'scheduled'
                        WHEN d.due_at > $4 THEN 'retry'
                        WHEN EXISTS (SELECT FROM paused p
                                      WHERE p.team_id IN (d.team_id, '00000000-0000-0000-0000-000000000000')
                                        AND p.destination IN ('', d.destination,
                                                              replace(d.destination, 'copies:', '')))
                        THEN 'paused'
                        ELSE 'due' END AS condition
              FROM deliveries d
             WHERE ($1::uuid IS NULL OR d.team_id = $1)
               AND ($2::text IS NULL OR d.destination IN ($2, 'copies:' || $2))
               AND ($3::uuid IS NULL OR d.email_id = $3)) AS item
"""

# Across teams, as above: the largest groups first.
GROUPS = """
    SELECT team_id, destination, count(*) AS items,
           count(*) FILTER (WHERE condition = 'working') AS working,
           count(*) FILTER (WHERE condition = 'fetching') AS fetching,
           count(*) FILTER (WHERE condition = 'quarantined') AS quarantined,
           count(*) FILTER (WHERE condition = 'scheduled') AS scheduled,
           count(*) FILTER (WHERE condition = 'retry') AS retry,
           count(*) FILTER (WHERE condition = 'paused') AS paused,
           count(*) FILTER (WHERE condition = 'due') AS due,
           max(tries) AS tries,
           min(due_at) FILTER (WHERE condition IN ('due', 'retry', 'scheduled')) AS next_attempt_at,
           min(created_at) AS oldest,
           mode() WITHIN GROUP (ORDER BY reason) FILTER (WHERE reason IS NOT NULL) AS reason
      FROM (SELECT d.team_id, d.destination, d.created_at, d.due_at, d.tries, d.reason,
                   CASE WHEN d.owner IS NOT NULL THEN 'working'
                        WHEN d.due_at = $5 THEN 'fetching'
                        WHEN d.due_at = $6 THEN 'quarantined'
                        WHEN d.due_at > $4 AND NOT d.released THEN 'scheduled'
                        WHEN d.due_at > $4 THEN 'retry'
                        WHEN EXISTS (SELECT FROM paused p
                                      WHERE p.team_id IN (d.team_id, '00000000-0000-0000-0000-000000000000')
                                        AND p.destination IN ('', d.destination,
                                                              replace(d.destination, 'copies:', '')))
                        THEN 'paused'
                        ELSE 'due' END AS condition
              FROM deliveries d
             WHERE ($1::uuid IS NULL OR d.team_id = $1)
               AND ($2::text IS NULL OR d.destination IN ($2, 'copies:' || $2))
               AND ($3::uuid IS NULL OR d.email_id = $3)) AS item
     GROUP BY team_id, destination
     ORDER BY items DESC, team_id, destination
     LIMIT $7
"""

# Across teams, as above: item by item.
ITEMS = """
    SELECT d.team_id, d.email_id, d.grp, d.destination, d.due_at, d.leased_until, d.tries, d.uncertain,
           d.first_attempt_at, d.last_host, d.last_reply, d.reason, d.created_at,
           CASE WHEN d.owner IS NOT NULL THEN 'working'
                        WHEN d.due_at = $5 THEN 'fetching'
                        WHEN d.due_at = $6 THEN 'quarantined'
                        WHEN d.due_at > $4 AND NOT d.released THEN 'scheduled'
                        WHEN d.due_at > $4 THEN 'retry'
                        WHEN EXISTS (SELECT FROM paused p
                                      WHERE p.team_id IN (d.team_id, '00000000-0000-0000-0000-000000000000')
                                        AND p.destination IN ('', d.destination,
                                                              replace(d.destination, 'copies:', '')))
                        THEN 'paused'
                        ELSE 'due' END AS condition
      FROM deliveries d
     WHERE ($1::uuid IS NULL OR d.team_id = $1)
       AND ($2::text IS NULL OR d.destination IN ($2, 'copies:' || $2))
       AND ($3::uuid IS NULL OR d.email_id = $3)
     ORDER BY d.team_id, d.destination, d.due_at, d.email_id, d.grp
"""

# Across teams, as above. Only items that wait for another attempt or are quarantined: what a process holds
# is skipped, and neither a scheduled email nor one whose attachment is missing is released. What a restore
# put aside may have been sent before: that is counted, as `pillarbox restored release` does.
RETRY = """
    WITH waiting AS MATERIALIZED (
        SELECT team_id, email_id, grp
          FROM deliveries
         WHERE owner IS NULL AND released AND due_at > $4 AND due_at < $5
           AND ($1::uuid IS NULL OR team_id = $1)
           AND ($2::text IS NULL OR destination IN ($2, 'copies:' || $2))
           AND ($3::uuid IS NULL OR email_id = $3)
         ORDER BY team_id, email_id, grp
         LIMIT $6
           FOR UPDATE SKIP LOCKED
    )
    UPDATE deliveries d
       SET due_at = $4, begun = 0, reason = CASE WHEN d.due_at < $7 THEN d.reason END, restored_due_at = NULL,
           uncertain = d.uncertain + coalesce(d.restored_due_at <= $4, false)::integer
      FROM waiting
     WHERE d.team_id = waiting.team_id AND d.email_id = waiting.email_id AND d.grp = waiting.grp
"""

# Across teams, as above: attachments whose fetching ended its processes (`kernel.work.jobs`).
RETRY_FETCHING = """
    UPDATE jobs j
       SET tries = j.attempt, due_at = $4, owner = NULL, leased_until = NULL
     WHERE j.attempt > j.tries AND j.begun >= $5 AND (j.owner IS NULL OR j.leased_until < $4)
       AND EXISTS (SELECT FROM deliveries d
                    WHERE d.team_id = j.team_id AND d.email_id = j.subject_id
                      AND ($1::uuid IS NULL OR d.team_id = $1)
                      AND ($2::text IS NULL OR d.destination IN ($2, 'copies:' || $2))
                      AND ($3::uuid IS NULL OR d.email_id = $3))
"""

# Across teams: processes belong to the installation.
ALIVE = """
    SELECT count(*) FROM processes
     WHERE seen_at > $1::timestamptz - make_interval(secs => $2)
       AND 'delivery' = ANY (string_to_array(roles, ','))
"""


async def totals(source: Source, part: QueueFilter, now: datetime) -> Totals:
    (row,) = await source.fetch(TOTALS, *part.args, now, UNTIL_FETCHED, QUARANTINED)
    return Totals(**row)


async def queue_groups(source: Source, part: QueueFilter, now: datetime, limit: int) -> list[QueueGroup]:
    """Return the `limit` largest groups of items by team and destination."""
    rows = await source.fetch(GROUPS, *part.args, now, UNTIL_FETCHED, QUARANTINED, limit)
    return [QueueGroup(**row) for row in rows]


async def items(conn: Connection, part: QueueFilter, now: datetime) -> AsyncIterator[WaitingItem]:
    """Yield every item by team, destination and time, a few at a time; `conn` must be in a transaction."""
    async for row in conn.cursor(ITEMS, *part.args, now, UNTIL_FETCHED, QUARANTINED, prefetch=PREFETCH):
        yield WaitingItem(**row)


async def items_of(source: Source, team_id: UUID, email_id: UUID, now: datetime) -> list[WaitingItem]:
    """Return the live work of one email."""
    rows = await source.fetch(ITEMS, team_id, None, email_id, now, UNTIL_FETCHED, QUARANTINED)
    return [WaitingItem(**row) for row in rows]


async def retry_now(source: Source, part: QueueFilter, now: datetime) -> int:
    """Make due what waits for another attempt or is quarantined; returns how many items that were.

    Attachments whose fetching was given up because it ended its processes are fetched once more.
    """
    await source.execute(RETRY_FETCHING, *part.args, now, MOST_BEGUN)
    moved = 0
    while True:
        status = await source.execute(RETRY, *part.args, now, UNTIL_FETCHED, RETRY_BATCH, QUARANTINED)
        changed = int(status.rsplit(" ", 1)[-1])
        moved += changed
        if changed < RETRY_BATCH:
            return moved


async def alive(source: Source, now: datetime) -> int:
    """Return how many processes with the role delivery said within the last half minute that they live."""
    found: int = await source.fetchval(ALIVE, now, ALIVE_SECONDS)
    return found
