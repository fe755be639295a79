"""SQL of insights and of where an email comes from."""

from __future__ import annotations

from typing import NamedTuple
from uuid import UUID

from pillarbox.kernel.postgres.database import TeamDb


class InspectedEmail(NamedTuple):
    """An email with what its insights follow from; `headers` is JSON text."""

    sender: str
    domain_name: str
    html: str | None
    text: str | None
    headers: str | None
    topic_id: UUID | None
    broadcast_id: UUID | None
    recipients: int


async def inspected(db: TeamDb, email_id: UUID) -> InspectedEmail | None:
    """Return the email with its content, as it was accepted."""
    return await db.one(
        InspectedEmail,
        """
        SELECT e.sender, e.domain_name, c.html, c.text, c.headers, e.topic_id, e.broadcast_id,
               (SELECT count(*) FROM recipients r WHERE r.team_id = e.team_id AND r.email_id = e.id)::integer
                   AS recipients
          FROM complete_emails e
          JOIN contents c ON c.team_id = e.team_id AND c.id = e.content_id
         WHERE e.team_id = $1 AND e.id = $2
        """,
        email_id,
    )


class EmailOriginRow(NamedTuple):
    """The key, broadcast, template or inbox that an email was made by; `headers` is JSON text."""

    key_id: UUID | None
    broadcast_id: UUID | None
    template_id: UUID | None
    inbox_id: UUID | None
    source: str
    headers: str | None


async def origin(db: TeamDb, email_id: UUID) -> EmailOriginRow | None:
    return await db.one(
        EmailOriginRow,
        """
        SELECT e.key_id, e.broadcast_id, e.template_id, e.inbox_id, e.source, c.headers
          FROM complete_emails e
          LEFT JOIN contents c ON c.team_id = e.team_id AND c.id = e.content_id
         WHERE e.team_id = $1 AND e.id = $2
        """,
        email_id,
    )
