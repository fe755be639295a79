"""SQL of the work that waits in the demo's own database."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from pillarbox.kernel.postgres.database import Source


async def next_due(source: Source) -> datetime | None:
    """Return when the next work is due: mail, jobs, or webhooks."""
    due: datetime | None = await source.fetchval(
        """
        SELECT min(due_at)
          FROM (SELECT min(due_at) AS due_at FROM deliveries WHERE due_at < 'infinity'
                 UNION ALL
                SELECT min(due_at) FROM jobs WHERE due_at < 'infinity'
                 UNION ALL
                SELECT min(due_at) FROM webhook_deliveries WHERE due_at < 'infinity') AS work
        """
    )
    return due


async def copies(source: Source, team_id: UUID, broadcast_id: UUID) -> list[tuple[str, str]]:
    """Return the emails of a broadcast with their recipients."""
    rows = await source.fetch(
        """
        SELECT e.id::text AS id, r.address
          FROM emails e
          JOIN recipients r ON r.team_id = e.team_id AND r.email_id = e.id
         WHERE e.team_id = $1 AND e.broadcast_id = $2
         ORDER BY e.id
        """,
        team_id,
        broadcast_id,
    )
    return [(row["id"], row["address"]) for row in rows]
