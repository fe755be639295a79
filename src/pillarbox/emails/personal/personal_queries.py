"""SQL of what emails have of a person. Work items are locked before emails, and emails before recipients."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from pillarbox.kernel.personal_data import DataSubject
from pillarbox.kernel.postgres.database import TeamDb

# The content of a broadcast is what the team wrote to everybody, and is not looked at.
SPAN = """
    SELECT e.id,
           EXISTS (SELECT FROM recipients r
                    WHERE r.team_id = $1 AND r.email_id = e.id AND r.address = $4) AS is_recipient,
           EXISTS (SELECT FROM recipients r
                    WHERE r.team_id = $1 AND r.email_id = e.id AND r.address = $4)
           AND NOT EXISTS (SELECT FROM recipients r
                            WHERE r.team_id = $1 AND r.email_id = e.id AND r.address <> $4) AS is_alone,
           EXISTS (SELECT FROM deliveries d WHERE d.team_id = $1 AND d.email_id = e.id) AS has_work,
           k.text LIKE '%' || $2 || '%' AND k.text ~ $3 AS is_mentioned
      FROM emails e
      LEFT JOIN contents c ON c.team_id = e.team_id AND c.id = e.content_id AND e.broadcast_id IS NULL
     CROSS JOIN LATERAL (
           SELECT lower(concat_ws(' ', e.subject, e.to_list::text, e.cc_list::text, e.bcc_list::text,
                                  e.reply_to_list::text, e.tags::text, e.message_id, c.html, c.text,
                                      c.headers::text,
                                  (SELECT string_agg(t.detail::text, ' ') FROM timeline t
                                    WHERE t.team_id = $1 AND t.email_id = e.id AND t.detail IS NOT NULL),
                                  (SELECT string_agg(concat_ws(' ', a.filename, a.url), ' ')
                                      FROM attachments a
                                    WHERE a.team_id = $1 AND a.content_id = c.id AND c.attachments > 0),
                                  (SELECT string_agg(concat_ws(' ', r.mailbox, r.personal::text), ' ')
                                     FROM recipients r
                                    WHERE r.team_id = $1 AND r.email_id = e.id))) AS text
            OFFSET 0) AS k
     WHERE e.team_id = $1 AND e.id > $5
     ORDER BY e.id
     LIMIT $6
"""

RECIPIENTS_SPAN = """
    SELECT e.id,
           EXISTS (SELECT FROM recipients r
                    WHERE r.team_id = $1 AND r.email_id = e.id AND r.address = $2) AS is_recipient
      FROM emails e
     WHERE e.team_id = $1 AND e.id > $3
     ORDER BY e.id
     LIMIT $4
"""

FREE_WORK = """
    SELECT email_id, grp
      FROM deliveries
     WHERE team_id = $1 AND email_id = ANY ($2::uuid[]) AND owner IS NULL
     ORDER BY email_id, grp
       FOR UPDATE SKIP LOCKED
"""

OPEN_RECIPIENTS = """
    SELECT email_id, position, grp
      FROM recipients
     WHERE team_id = $1 AND email_id = ANY ($2::uuid[]) AND address = $3
       AND state IN ('queued', 'scheduled', 'sent', 'delivery_delayed')
     ORDER BY email_id, position
"""

DROP_EMPTY_WORK = """
    DELETE FROM deliveries d
     USING unnest($2::uuid[], $3::smallint[]) AS k (email_id, grp)
     WHERE d.team_id = $1 AND d.email_id = k.email_id AND d.grp = k.grp AND d.owner IS NULL
       AND NOT EXISTS (SELECT FROM recipients r
                        WHERE r.team_id = $1 AND r.email_id = d.email_id AND r.grp = d.grp
                          AND r.state IN ('queued', 'scheduled', 'sent', 'delivery_delayed'))
"""

WITH_WORK = """
    SELECT k.id
      FROM unnest($2::uuid[]) AS k (id)
     WHERE EXISTS (SELECT FROM deliveries d WHERE d.team_id = $1 AND d.email_id = k.id)
"""

REDACT_RECIPIENTS = """
    UPDATE recipients r
       SET address = CASE WHEN r.address = $5 THEN $6 ELSE r.address END,
           mailbox = CASE WHEN r.address = $5 THEN $6 ELSE regexp_replace(r.mailbox, $4, $6, 'gi') END,
           personal = CASE WHEN r.personal IS NULL THEN NULL
                           WHEN r.address = $5
                           THEN '{"contact":"00000000-0000-0000-0000-000000000000"}'
                           ELSE regexp_replace(r.personal::text, $4, $6, 'gi') END::json
     WHERE r.team_id = $1 AND r.email_id = ANY ($2::uuid[])
       AND (r.address = $5 OR lower(concat_ws(' ', r.mailbox, r.personal::text)) LIKE '%' || $3 || '%')
"""

REDACT_EMAILS = """
    UPDATE emails e
       SET subject = CASE WHEN e.id = ANY ($3::uuid[]) THEN '' ELSE regexp_replace(e.subject, $4, $6,
           'gi') END,
           to_list = regexp_replace(e.to_list::text, $5, '"' || $6 || '"', 'gi')::json,
           cc_list = regexp_replace(e.cc_list::text, $5, '"' || $6 || '"', 'gi')::json,
           bcc_list = regexp_replace(e.bcc_list::text, $5, '"' || $6 || '"', 'gi')::json,
           reply_to_list = regexp_replace(e.reply_to_list::text, $5, '"' || $6 || '"', 'gi')::json,
           tags = CASE WHEN e.id = ANY ($3::uuid[]) THEN NULL
                       ELSE regexp_replace(e.tags::text, $4, $6, 'gi') END::json,
           message_id = regexp_replace(e.message_id, $4, $6, 'gi')
     WHERE e.team_id = $1 AND e.id = ANY ($2::uuid[])
"""

# The content of a broadcast has an id of its own and stays.
REDACT_CONTENTS = """
    UPDATE contents c
       SET html = CASE WHEN c.id = ANY ($3::uuid[]) THEN NULL ELSE regexp_replace(c.html, $4, $5, 'gi') END,
           text = CASE WHEN c.id = ANY ($3::uuid[]) THEN NULL ELSE regexp_replace(c.text, $4, $5, 'gi') END,
           headers = CASE WHEN c.id = ANY ($3::uuid[]) THEN NULL
                          ELSE regexp_replace(c.headers::text, $4, $5, 'gi') END::json,
           attachments = CASE WHEN c.id = ANY ($3::uuid[]) THEN 0 ELSE c.attachments END,
           link_places = NULL
     WHERE c.team_id = $1 AND c.id = ANY ($2::uuid[])
"""

REDACT_FILE_NAMES = """
    UPDATE attachments a
       SET filename = regexp_replace(a.filename, $3, $4, 'gi'), url = regexp_replace(a.url, $3, $4, 'gi')
     WHERE a.team_id = $1 AND a.content_id = ANY ($2::uuid[])
       AND (lower(a.filename) ~ $3 OR lower(a.url) ~ $3)
"""

REMOVE_ATTACHMENTS = """
    DELETE FROM attachments WHERE team_id = $1 AND content_id = ANY ($2::uuid[]) RETURNING blob
"""

SHOWN = """
    SELECT e.id, e.created_at, e.sender, e.to_list, e.subject, e.last_event, e.tags, c.html, c.text,
           (SELECT r.personal FROM recipients r
             WHERE r.team_id = $1 AND r.email_id = e.id AND r.address = $3 LIMIT 1) AS personal
      FROM complete_emails e
      LEFT JOIN contents c ON c.team_id = e.team_id AND c.id = e.content_id
     WHERE e.team_id = $1 AND e.id = ANY ($2::uuid[])
     ORDER BY e.id
"""


class EmailOfPerson(NamedTuple):
    """An email and what the person is to it. `is_alone`: nobody else got it; `has_work`: something of it is
    still
    to go out."""

    id: UUID
    is_recipient: bool
    is_alone: bool
    has_work: bool
    is_mentioned: bool


class EmailToPerson(NamedTuple):
    """An email; `is_recipient` where it went to the person."""

    id: UUID
    is_recipient: bool


class OpenPlace(NamedTuple):
    """A recipient whose fate is open."""

    email_id: UUID
    position: int
    grp: int


class EmailForFile(NamedTuple):
    """An email as the file of a person has it; lists, tags and values are JSON text."""

    id: UUID
    created_at: datetime
    sender: str
    to_list: str
    subject: str
    last_event: str
    tags: str | None
    html: str | None
    text: str | None
    personal: str | None


async def span(db: TeamDb, person: DataSubject, after: UUID, limit: int) -> list[EmailOfPerson]:
    """Return the next emails behind an id."""
    return await db.all(EmailOfPerson, SPAN, *person.found_by, person.address, after, limit)


async def recipients_span(db: TeamDb, address: str, after: UUID, limit: int) -> list[EmailToPerson]:
    """Return the next emails behind an id, with whether they went to an address."""
    return await db.all(EmailToPerson, RECIPIENTS_SPAN, address, after, limit)


async def free_work(db: TeamDb, email_ids: Sequence[UUID]) -> set[tuple[UUID, int]]:
    """Lock the work of these emails that no process has; returns its emails and groups."""
    rows = await db.source.fetch(FREE_WORK, db.team_id, email_ids)
    return {(row["email_id"], row["grp"]) for row in rows}


async def open_recipients(db: TeamDb, email_ids: Sequence[UUID], address: str) -> list[OpenPlace]:
    """Return the recipients of these emails with this address whose fate is open."""
    return await db.all(OpenPlace, OPEN_RECIPIENTS, email_ids, address)


async def drop_empty_work(db: TeamDb, email_ids: Sequence[UUID], groups: Sequence[int]) -> None:
    """Remove those of these work items that have no open recipient left."""
    await db.run(DROP_EMPTY_WORK, email_ids, groups)


async def with_work(db: TeamDb, email_ids: Sequence[UUID]) -> Sequence[UUID]:
    """Return those of these emails of which something is still to go out."""
    return await db.values(WITH_WORK, email_ids) if email_ids else []


async def redact_recipients(
    db: TeamDb, email_ids: Sequence[UUID], person: DataSubject, stands_for: str
) -> None:
    """Make the person nobody among the recipients of these emails."""
    await db.run(REDACT_RECIPIENTS, email_ids, *person.found_by, person.address, stands_for)


async def redact_emails(
    db: TeamDb, email_ids: Sequence[UUID], alone: Sequence[UUID], person: DataSubject, stands_for: str
) -> None:
    """Erase the person in these emails; those of `alone` lose their subject and tags."""
    await db.run(REDACT_EMAILS, email_ids, alone, person.pattern, person.quoted, stands_for)


async def redact_contents(
    db: TeamDb, email_ids: Sequence[UUID], alone: Sequence[UUID], person: DataSubject, stands_for: str
) -> None:
    """Erase the person in what these emails say; of those of `alone` nothing is left."""
    await db.run(REDACT_CONTENTS, email_ids, alone, person.pattern, stands_for)


async def redact_file_names(
    db: TeamDb, email_ids: Sequence[UUID], person: DataSubject, stands_for: str
) -> None:
    """Erase the person in the names of attachments."""
    await db.run(REDACT_FILE_NAMES, email_ids, person.pattern, stands_for)


async def remove_attachments(db: TeamDb, email_ids: Sequence[UUID]) -> Sequence[str | None]:
    """Remove the attachments of these emails; returns their blobs."""
    return await db.values(REMOVE_ATTACHMENTS, email_ids) if email_ids else []


async def shown(db: TeamDb, email_ids: Sequence[UUID], address: str) -> list[EmailForFile]:
    """Return these emails, the oldest first, with the values of the recipient with this address."""
    return await db.all(EmailForFile, SHOWN, email_ids, address)
