"""Broadcasts that have begun, made by their rows: quicker than by the API and its jobs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import msgspec

from kit.world import Team
from pillarbox.kernel.ids import Ids

CONTENT = """
    INSERT INTO contents (team_id, id, created_at, sender, subject, reply_to_list, preview_text, html, text)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
"""

BROADCAST = """
    INSERT INTO broadcasts (team_id, id, topic_id, sender, subject, html, text, status, created_at, queued_at,
                            resolved_at, domain_id, domain_name, content_id, recipients)
    VALUES ($1, $2, $3, $4, $5, $6, $7, 'queued', $8, $8, $8,
            (SELECT id FROM domains WHERE team_id = $1 AND name = $9), $9, $10, $11)
"""

RECIPIENTS = """
    INSERT INTO broadcast_recipients (team_id, broadcast_id, contact_id)
    SELECT $1, $2, k.id FROM unnest($3::uuid[]) AS k (id)
"""

COPIES = """
    SELECT c.address, r.email_id, r.skipped_for, e.last_event
      FROM broadcast_recipients r
      LEFT JOIN contacts c ON c.team_id = r.team_id AND c.id = r.contact_id
      LEFT JOIN emails e ON e.team_id = r.team_id AND e.id = r.email_id
     WHERE r.team_id = $1 AND r.broadcast_id = $2
     ORDER BY r.contact_id
"""


async def a_broadcast(
    team: Team,
    contacts: Sequence[UUID],
    *,
    sender: str = "Harbor <news@harbor.example>",
    subject: str = "The tides",
    html: str | None = "<p>High water at noon</p>",
    text: str | None = None,
    preview_text: str | None = None,
    reply_to: Sequence[str] | None = None,
    topic_id: UUID | None = None,
) -> UUID:
    """Store a broadcast to these contacts that is being sent; its recipients are written, its copies are
    not made."""
    ids = team.world.app.need(Ids)
    content, broadcast = ids.stamp(), ids.stamp()
    replies = None if reply_to is None else msgspec.json.encode(reply_to).decode()
    pool = team.world.pool
    await pool.execute(
        CONTENT, team.id, content.id, content.at, sender, subject, replies, preview_text, html, text
    )
    await pool.execute(
        BROADCAST,
        team.id,
        broadcast.id,
        topic_id,
        sender,
        subject,
        html,
        text,
        broadcast.at,
        sender.rpartition("@")[2].rstrip(">"),
        content.id,
        len(contacts),
    )
    await pool.execute(RECIPIENTS, team.id, broadcast.id, list(contacts))
    return UUID(str(broadcast.id))


async def copies_of(team: Team, broadcast: UUID) -> list[dict[str, Any]]:
    """Return what became of each recipient: address, email, why it was skipped, and the email's
    last event."""
    return [dict(row) for row in await team.world.pool.fetch(COPIES, team.id, broadcast)]
