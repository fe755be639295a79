"""SQL of the destinations that mail has waited for longest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pillarbox.kernel.postgres.database import Source
from pillarbox.kernel.work.queue_counts import QUERY_TIMEOUT

# Across teams: the installation's queue. At most $6 rows are read.
COUNT = """
    SELECT CASE WHEN g.place <= $5 THEN g.destination END AS destination,
           sum(g.items)::bigint AS items, min(g.since) AS since
      FROM (SELECT d.destination, count(*) AS items, min(d.since) AS since,
                   row_number() OVER (ORDER BY min(d.since), d.destination) AS place
              FROM (SELECT destination,
                           CASE WHEN due_at IN ($2, $3) THEN NULL
                                WHEN starts_with(reason, $4) THEN coalesce(first_attempt_at, created_at)
                                ELSE least(first_attempt_at, due_at) END AS since
                      FROM deliveries LIMIT $6) AS d
             WHERE d.since <= $1
             GROUP BY d.destination) AS g
     GROUP BY 1
"""

# Across teams, as above: $6 percent of the table's pages are read.
SAMPLE = """
    SELECT CASE WHEN g.place <= $5 THEN g.destination END AS destination,
           sum(g.items)::bigint AS items, min(g.since) AS since
      FROM (SELECT d.destination, count(*) AS items, min(d.since) AS since,
                   row_number() OVER (ORDER BY min(d.since), d.destination) AS place
              FROM (SELECT destination,
                           CASE WHEN due_at IN ($2, $3) THEN NULL
                                WHEN starts_with(reason, $4) THEN coalesce(first_attempt_at, created_at)
                                ELSE least(first_attempt_at, due_at) END AS since
                      FROM deliveries TABLESAMPLE SYSTEM ($6)) AS d
             WHERE d.since <= $1
             GROUP BY d.destination) AS g
     GROUP BY 1
"""


async def count(source: Source, *values: Any) -> Sequence[Any]:
    """Return what waits by destination, of so many items as the last value says."""
    rows: Sequence[Any] = await source.fetch(COUNT, *values, timeout=QUERY_TIMEOUT)
    return rows


async def sample(source: Source, *values: Any) -> Sequence[Any]:
    """Return the counts in some pages of the table; the last value is their percentage."""
    rows: Sequence[Any] = await source.fetch(SAMPLE, *values, timeout=QUERY_TIMEOUT)
    return rows


async def items(source: Source, limit: int) -> int:
    """Count the items of the queue, up to a limit."""
    found: int = await source.fetchval("SELECT count(*) FROM (SELECT FROM deliveries LIMIT $1) d", limit)
    return found
