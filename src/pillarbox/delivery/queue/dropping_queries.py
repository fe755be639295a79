"""SQL of mail that the operator gives up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from pillarbox.delivery.queue.overview import QueueFilter
from pillarbox.kernel.postgres.database import Connection
from pillarbox.timeline.rules import OPEN

# Across teams: the operator's command; a team, a destination or an email narrows it.
TAKE = """
    WITH free AS MATERIALIZED (
        SELECT team_id, email_id, grp
          FROM deliveries
         WHERE owner IS NULL
           AND ($1::uuid IS NULL OR team_id = $1)
           AND ($2::text IS NULL OR destination IN ($2, 'copies:' || $2))
           AND ($3::uuid IS NULL OR email_id = $3)
         ORDER BY team_id, email_id, grp
         LIMIT $4
           FOR UPDATE SKIP LOCKED
    )
    DELETE FROM deliveries d
     USING free
     WHERE d.team_id = free.team_id AND d.email_id = free.email_id AND d.grp = free.grp
    RETURNING d.team_id, d.email_id, d.grp, d.uncertain > 0 AS uncertain
"""

# Across teams, as above: who is still open in these groups.
STILL_OPEN = """
    SELECT r.team_id, r.email_id, r.grp, r.position
      FROM unnest($1::uuid[], $2::uuid[], $3::smallint[]) AS k (team_id, email_id, grp)
      JOIN recipients r ON r.team_id = k.team_id AND r.email_id = k.email_id AND r.grp = k.grp
     WHERE r.state = ANY ($4::text[])
     ORDER BY r.team_id, r.email_id, r.position
"""


async def take(conn: Connection, part: QueueFilter, limit: int) -> Sequence[Any]:
    """Remove up to so many items that no process holds; returns their keys, each `uncertain` or not."""
    rows: Sequence[Any] = await conn.fetch(TAKE, *part.args, limit)
    return rows


async def still_open(conn: Connection, keys: Sequence[tuple[UUID, UUID, int]]) -> Sequence[Any]:
    """Return the recipients of these items whose fate is open."""
    rows: Sequence[Any] = await conn.fetch(STILL_OPEN, *zip(*keys, strict=True), sorted(OPEN))
    return rows
