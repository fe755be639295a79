"""SQL of tracking."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from pillarbox.kernel.postgres.database import Connection

Place = tuple[UUID, UUID, int]
"""A recipient: team, email, position."""

# Of several teams at once; each row is looked up by its key.
UNDERWAY = """
    SELECT r.team_id, r.email_id, r.position
      FROM unnest($1::uuid[], $2::uuid[], $3::smallint[]) AS k (team_id, email_id, position)
      JOIN recipients r ON r.team_id = k.team_id AND r.email_id = k.email_id AND r.position = k.position
     WHERE r.state IN ('queued', 'delivery_delayed')
"""


async def underway(conn: Connection, places: Iterable[Place]) -> set[Place]:
    """Return those recipients of whom it is not known yet that the mail has reached them."""
    teams, emails, positions = zip(*places, strict=True)
    rows = await conn.fetch(UNDERWAY, teams, emails, positions)
    return {(row["team_id"], row["email_id"], row["position"]) for row in rows}
