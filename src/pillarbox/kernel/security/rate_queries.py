"""SQL of the limits that nodes share (docs/decisions/0054). Time is the database's: clocks of nodes differ.

Both tables are unlogged: what they say is worth a second, or ten, and a crash of the database may empty them.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from pillarbox.kernel.postgres.database import Source, literal
from pillarbox.kernel.security.rate_portions import QuotaGrant, QuotaRequest

LIVES: Final = timedelta(seconds=10)
"""A node that has not been seen for so long has ended."""

KEPT: Final = timedelta(hours=1)

# A node gets at most half of what is left, or its equal part where that is more. What was let through above
# the limit is taken from the windows that follow. A window begins with its first request, and never before
# the last one has ended. One that would last longer than a second began before somebody set the clock back:
# it is over, or the team would be refused until the clock is there again. The row that is proposed holds the
# question: what is owed is `taken - granted`.
TAKE_PORTIONS: Final = """
    INSERT INTO rate_windows AS w (team_id, ends_at, most, granted, taken)
    SELECT k.team_id, coalesce($7, now()) + make_interval(secs => 1 - k.age), k.most,
           k.granted, k.owed + k.granted
      FROM (SELECT u.team_id, u.most, u.owed, u.age,
                   greatest(0, least(u.wanted, u.most - u.owed,
                                     greatest((u.most + $6 - 1) / $6, (u.most - u.owed + 1) / 2))) AS granted
              FROM unnest($1::text::uuid[], $2::text::integer[], $3::text::integer[], $4::text::integer[],
                          $5::text::float8[]) AS u (team_id, most, owed, wanted, age)) AS k
     ORDER BY k.team_id
    ON CONFLICT (team_id) DO UPDATE
       SET (ends_at, most, granted, taken) = (
           SELECT p.ends_at, excluded.most, p.granted, p.taken + p.granted
             FROM (SELECT b.ends_at, b.taken,
                          greatest(0, least(excluded.granted, excluded.most - b.taken,
                                            greatest((excluded.most + $6 - 1) / $6,
                                                     (excluded.most - b.taken + 1) / 2))) AS granted
                     FROM (SELECT CASE WHEN w.ends_at > coalesce($7, now()) + interval '2 seconds'
                                       THEN excluded.ends_at
                                       WHEN w.ends_at > coalesce($7, now()) THEN w.ends_at
                                       ELSE greatest(excluded.ends_at, w.ends_at + interval '1 second') END,
                                  CASE WHEN w.ends_at > coalesce($7, now()) + interval '2 seconds' THEN 0
                                       WHEN w.ends_at > coalesce($7, now()) THEN w.taken
                                       ELSE greatest(0, w.taken - w.most * (1 + floor(least(1000,
                                            extract(epoch FROM coalesce($7, now()) - w.ends_at)))))
                                  END::integer + excluded.taken - excluded.granted
                          ) AS b (ends_at, taken)) AS p)
    RETURNING team_id, granted, greatest(0, most - taken) AS free,
              extract(epoch FROM ends_at - coalesce($7::timestamptz, now()))::float8 AS seconds
"""

# Of no team: `team_id` is the key of a limit. A window that would last longer than it may began before
# somebody set the clock back.
COUNT: Final = """
    INSERT INTO rate_windows AS w (team_id, ends_at, most, granted, taken)
    VALUES ($1, now() + make_interval(secs => $3), $2, 0, 1)
    ON CONFLICT (team_id) DO UPDATE
       SET (ends_at, most, taken) = (
           SELECT CASE WHEN o.is_over THEN excluded.ends_at ELSE w.ends_at END, excluded.most,
                  CASE WHEN o.is_over THEN 1 ELSE least(w.taken, excluded.most) + 1 END
             FROM (SELECT w.ends_at <= now()
                       OR w.ends_at > excluded.ends_at + interval '10 seconds' AS is_over) AS o)
    RETURNING taken, extract(epoch FROM ends_at - now())::float8 AS seconds
"""

# Nodes belong to the installation.
SHOW_NODE: Final = """
    WITH shown AS (
        INSERT INTO rate_nodes (id, seen_at) VALUES ($1, now())
        ON CONFLICT (id) DO UPDATE SET seen_at = excluded.seen_at
    )
    SELECT 1 + count(*) FROM rate_nodes
     WHERE id <> $1 AND seen_at > now() - $2::interval AND seen_at < now() + $2::interval
"""

# The poll of queues asks it: whether a node has to look for others (`kernel.work.queue_poll`).
HAS_OTHERS: Final = "SELECT count(*) > 1 FROM rate_nodes WHERE seen_at > now() - interval '20 seconds'"

REMOVE_NODE: Final = "DELETE FROM rate_nodes WHERE id = $1"

# Across teams: what no limit needs any more.
REMOVE_OLD: Final = """
    WITH nodes AS (
        DELETE FROM rate_nodes WHERE seen_at < now() - $1::interval
    )
    DELETE FROM rate_windows WHERE ends_at < now() - $1::interval
"""


async def take_portions(
    source: Source, questions: Sequence[QuotaRequest], nodes: int, now: datetime | None = None
) -> dict[bytes, QuotaGrant]:
    """Return the answers by the key of the team. `now` is what time it is, where it is not the
    database's time."""
    rows = await source.fetch(
        TAKE_PORTIONS,
        literal(UUID(bytes=question.key) for question in questions),
        literal(question.limit for question in questions),
        literal(question.owed for question in questions),
        literal(question.wanted for question in questions),
        literal(question.age for question in questions),
        nodes,
        now,
    )
    return {row["team_id"].bytes: QuotaGrant(row["granted"], row["free"], row["seconds"]) for row in rows}


async def count(source: Source, key: bytes, limit: int, seconds: float) -> tuple[int, float]:
    """Count one request; return how many of the key its window has with it, one more than the limit at most,
    and the seconds until it ends."""
    [row] = await source.fetch(COUNT, UUID(bytes=key), limit, seconds)
    return row["taken"], row["seconds"]


async def show_node(source: Source, node: str) -> int:
    """Write that this node lives; returns how many do."""
    living: int = await source.fetchval(SHOW_NODE, node, LIVES)
    return living


async def remove_node(source: Source, node: str) -> None:
    """Remove this node, which ends."""
    await source.execute(REMOVE_NODE, node)


async def remove_old(source: Source) -> None:
    """Remove what is older than `KEPT`."""
    await source.execute(REMOVE_OLD, KEPT)
