"""SQL of mail that has a topic: which topics there are, and who wants mail of them (topics.md 2)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from uuid import UUID

from pillarbox.kernel.postgres.database import Connection, TeamDb

LIVE = """
    SELECT id FROM topics WHERE team_id = $1 AND id = ANY ($2::uuid[]) AND deleted_at IS NULL
"""

# What people chose counts for a topic that is marked deleted as well; where its row is gone, nobody gets the
# mail.
OPTED_OUT = """
    SELECT r.email_id, r.position
      FROM emails e
      JOIN recipients r ON r.team_id = e.team_id AND r.email_id = e.id
      LEFT JOIN topics t ON t.team_id = e.team_id AND t.id = e.topic_id
      LEFT JOIN contacts c ON c.team_id = r.team_id AND c.address = r.address
      LEFT JOIN topic_choices h ON h.team_id = c.team_id AND h.contact_id = c.id AND h.topic_id = t.id
     WHERE e.team_id = $1 AND e.id = ANY ($2::uuid[])
       AND r.state IN ('queued', 'scheduled', 'sent', 'delivery_delayed')
       AND (t.id IS NULL OR c.unsubscribed OR coalesce(h.subscription, t.default_subscription) = 'opt_out')
"""


async def live(db: TeamDb, topic_ids: Collection[UUID]) -> set[UUID]:
    """Those of these topics that the team has, without those that are deleted."""
    return set(await db.values(LIVE, list(topic_ids)))


async def opted_out(conn: Connection, team_id: UUID, email_ids: Sequence[UUID]) -> set[tuple[UUID, int]]:
    """The open recipients of these emails who may not get mail of its topic: email and position."""
    rows = await conn.fetch(OPTED_OUT, team_id, email_ids)
    return {(row["email_id"], row["position"]) for row in rows}
