"""SQL of what others ask about emails: the operator, the owner of a domain name, work that gives way."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from pillarbox.kernel.postgres.database import Connection, Source, TeamDb


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
    """Return the team whose email this is: the operator names it by its id alone. One index scan for each
    team."""
    found: UUID | None = await source.fetchval(
        """
        SELECT t.id FROM teams t WHERE EXISTS (SELECT FROM emails e WHERE e.team_id = t.id AND e.id = $1)
        """,
        email_id,
    )
    return found


async def get(db: TeamDb, email_id: UUID) -> EmailOverview | None:
    return await db.one(
        EmailOverview,
        """
        SELECT e.team_id, e.id, e.created_at, e.message_id, e.sender, e.to_list, e.cc_list, e.bcc_list,
               e.reply_to_list, e.subject, e.scheduled_at, e.domain_name, e.last_event, e.last_event_at,
               coalesce(c.attachments, 0) AS attachments
          FROM complete_emails e
          LEFT JOIN contents c ON c.team_id = e.team_id AND c.id = e.content_id
         WHERE e.team_id = $1 AND e.id = $2
        """,
        email_id,
    )


async def recipients(db: TeamDb, email_id: UUID) -> list[RecipientOverview]:
    return await db.all(
        RecipientOverview,
        """
        SELECT position, role, mailbox, grp, state, bounce_type
          FROM recipients
         WHERE team_id = $1 AND email_id = $2
         ORDER BY position
        """,
        email_id,
    )


class DomainActivity:
    """The mail of a domain name's owner, asked for before the name goes to another team."""

    async def sent_since(self, db: TeamDb, domain_id: UUID, since: datetime) -> bool:
        """Return whether mail from the domain left after `since`."""
        found: bool = await db.value(
            """
            SELECT EXISTS (
                SELECT FROM timeline t
                  JOIN emails e ON e.team_id = t.team_id AND e.id = t.email_id
                 WHERE t.team_id = $1 AND t.at >= $2 AND t.kind = 'sent' AND e.domain_id = $3
            )
            """,
            since,
            domain_id,
        )
        return found

    async def has_scheduled(self, db: TeamDb, domain_id: UUID) -> bool:
        """Return whether mail from the domain waits for its time."""
        found: bool = await db.value(
            """
            SELECT EXISTS (
                SELECT FROM deliveries d
                  JOIN emails e ON e.team_id = d.team_id AND e.id = d.email_id
                 WHERE d.team_id = $1 AND NOT d.released AND e.domain_id = $2
            )
            """,
            domain_id,
        )
        return found


async def inserted_contents(conn: Connection) -> int:
    """Return how many contents were stored since PostgreSQL counts, by all teams. No row is read."""
    count: int = await conn.fetchval("SELECT pg_stat_get_tuples_inserted('contents'::regclass)")
    return count


async def digest_of_one(db: TeamDb, email_id: UUID) -> str:
    """Return the id of the last line of history of an email; "" where it has none."""
    found: str | None = await db.value(
        """
        SELECT h.id::text FROM timeline h WHERE h.team_id = $1 AND h.email_id = $2 ORDER BY h.id DESC LIMIT 1
        """,
        email_id,
    )
    return found or ""


async def digest_of_newest(db: TeamDb) -> str:
    """Return a digest of the team's newest hundred emails and their last events."""
    found: str = await db.value(
        """
        SELECT md5(coalesce(string_agg(e.id::text || e.last_event_at::text, ',' ORDER BY e.id), ''))
          FROM (SELECT id, last_event_at
                  FROM emails
                 WHERE team_id = $1
                 ORDER BY id DESC
                 LIMIT 100) AS e
        """
    )
    return found
