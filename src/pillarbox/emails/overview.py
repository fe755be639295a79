"""Emails as the operator sees them, without naming a team."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from pillarbox.kernel.postgres.database import Source, TeamDb

# Across teams: the operator names an email by its id alone. One index scan for each team.
OWNER = """
    SELECT t.id FROM teams t WHERE EXISTS (SELECT FROM emails e WHERE e.team_id = t.id AND e.id = $1)
"""

GET = """
    SELECT e.team_id, e.id, e.created_at, e.message_id, e.sender, e.to_list, e.cc_list, e.bcc_list,
           e.reply_to_list, e.subject, e.scheduled_at, e.domain_name, e.last_event, e.last_event_at,
           coalesce(c.attachments, 0) AS attachments
      FROM complete_emails e
      LEFT JOIN contents c ON c.team_id = e.team_id AND c.id = e.content_id
     WHERE e.team_id = $1 AND e.id = $2
"""

RECIPIENTS = """
    SELECT position, role, mailbox, grp, state, bounce_type
      FROM recipients
     WHERE team_id = $1 AND email_id = $2
     ORDER BY position
"""


class EmailOverview(NamedTuple):
    """One email without its content; the `*_list` columns are JSON text."""

    team_id: UUID
    id: UUID
    created_at: datetime
    message_id: str
    sender: str
    to_list: str
    cc_list: str | None
    bcc_list: str | None
    reply_to_list: str | None
    subject: str
    scheduled_at: datetime | None
    domain_name: str
    last_event: str
    last_event_at: datetime
    attachments: int


class RecipientOverview(NamedTuple):
    """One recipient; `grp` names its work item."""

    position: int
    role: str
    mailbox: str
    grp: int
    state: str
    bounce_type: str | None


async def owner_of(source: Source, email_id: UUID) -> UUID | None:
    """The team whose email this is."""
    found: UUID | None = await source.fetchval(OWNER, email_id)
    return found


async def get(db: TeamDb, email_id: UUID) -> EmailOverview | None:
    return await db.one(EmailOverview, GET, email_id)


async def recipients(db: TeamDb, email_id: UUID) -> list[RecipientOverview]:
    return await db.all(RecipientOverview, RECIPIENTS, email_id)
