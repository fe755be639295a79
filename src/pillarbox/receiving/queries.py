"""SQL of received mail that is stored."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

import asyncpg

from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.wire.paging import Page

LIST = """
    SELECT p.id, p.to_list, p.sender, p.created_at, p.subject, p.bcc_list, p.cc_list, p.reply_to_list,
           p.received_for, p.message_id,
           CASE WHEN p.attachments = 0 THEN NULL
                ELSE (SELECT json_agg(json_build_object(
                                 'id', a.id, 'filename', a.filename, 'content_type', a.content_type,
                                 'content_disposition', a.disposition, 'content_id', a.content_id,
                                 'size', a.size) ORDER BY a.position)
                        FROM received_attachments a
                       WHERE a.team_id = $1 AND a.email_id = p.id) END AS attachments
      FROM ((SELECT team_id, id, to_list, sender, created_at, subject, bcc_list, cc_list, reply_to_list,
                    received_for, message_id, attachments
               FROM received_emails WHERE team_id = $1 AND id < $2 ORDER BY id DESC LIMIT $4)
            UNION ALL
            (SELECT team_id, id, to_list, sender, created_at, subject, bcc_list, cc_list, reply_to_list,
                    received_for, message_id, attachments
               FROM received_emails WHERE team_id = $1 AND id > $3 ORDER BY id LIMIT $4)) AS p
"""

BY_MESSAGE_ID = """
    SELECT p.id, p.to_list, p.sender, p.created_at, p.subject, p.bcc_list, p.cc_list, p.reply_to_list,
           p.received_for, p.message_id,
           CASE WHEN p.attachments = 0 THEN NULL
                ELSE (SELECT json_agg(json_build_object(
                                 'id', a.id, 'filename', a.filename, 'content_type', a.content_type,
                                 'content_disposition', a.disposition, 'content_id', a.content_id,
                                 'size', a.size) ORDER BY a.position)
                        FROM received_attachments a
                       WHERE a.team_id = $1 AND a.email_id = p.id) END AS attachments
      FROM (SELECT team_id, id, to_list, sender, created_at, subject, bcc_list, cc_list, reply_to_list,
                   received_for, message_id, attachments
              FROM received_emails
             WHERE team_id = $1 AND md5(message_id)::uuid = md5($2)::uuid AND message_id = $2 AND id < $3
             ORDER BY id DESC
             LIMIT $4) AS p
     ORDER BY p.id DESC
"""

# How far a page of a filter reads.
ID_BEHIND = """
    SELECT id FROM received_emails
     WHERE team_id = $1 AND id < $2 AND id >= $3
     ORDER BY id DESC OFFSET $4 LIMIT 1
"""

FITTING = """
    SELECT p.id, p.to_list, p.sender, p.created_at, p.subject, p.bcc_list, p.cc_list, p.reply_to_list,
           p.received_for, p.message_id,
           CASE WHEN p.attachments = 0 THEN NULL
                ELSE (SELECT json_agg(json_build_object(
                                 'id', a.id, 'filename', a.filename, 'content_type', a.content_type,
                                 'content_disposition', a.disposition, 'content_id', a.content_id,
                                 'size', a.size) ORDER BY a.position)
                        FROM received_attachments a
                       WHERE a.team_id = $1 AND a.email_id = p.id) END AS attachments
      FROM (SELECT team_id, id, to_list, sender, created_at, subject, bcc_list, cc_list, reply_to_list,
                   received_for, message_id, attachments
              FROM received_emails
             WHERE team_id = $1 AND id < $2 AND id >= $3
               AND ($4::text IS NULL OR strpos(lower(sender), $4) > 0)
               AND ($5::text IS NULL OR EXISTS (
                       SELECT FROM json_array_elements_text(received_for) AS a (address)
                        WHERE CASE WHEN $5 LIKE '@%' THEN right(lower(a.address), length($5)) = $5
                                   ELSE lower(a.address) = $5 END))
               AND NOT EXISTS (SELECT FROM unnest($6::text[]) AS w (word)
                                WHERE strpos(lower(subject), w.word) = 0)
             ORDER BY id DESC
             LIMIT $7) AS p
     ORDER BY p.id DESC
"""

# Goes through the index of the address in From, which is a digest: the address itself is compared as well.
FROM_ADDRESS = """
    SELECT id, created_at, subject
      FROM received_emails
     WHERE team_id = $1
       AND md5(lower(substring(right(sender, 330) FROM '([^<> ]+)>?$')))::uuid = md5($2)::uuid
       AND lower(substring(right(sender, 330) FROM '([^<> ]+)>?$')) = $2
       AND id < $3
     ORDER BY id DESC
     LIMIT $4
"""

GET = """
    SELECT id, to_list, sender, created_at, subject, bcc_list, cc_list, reply_to_list, received_for,
           message_id, attachments, recipients, mail_from, client, spf, dkim, dmarc, spam_reason, size,
           complete
      FROM received_emails
     WHERE team_id = $1 AND id = $2
"""

VERDICTS = """
    SELECT id, spf, dkim, dmarc, spam_reason, verdicts FROM received_emails WHERE team_id = $1 AND id = $2
"""

VERDICTS_FOR_EVENTS = """
    SELECT id, spf, dkim, dmarc, spam_reason, verdicts
      FROM received_emails
     WHERE team_id = $1 AND id = ANY ($2::uuid[])
"""

SOURCE = """
    SELECT id, trace, size, data, blob, parsed FROM received_sources WHERE team_id = $1 AND id = $2
"""

PARTS = """
    SELECT id, email_id, filename, content_type, disposition, content_id, inline, size, encoding, starts, ends
      FROM received_attachments
     WHERE team_id = $1 AND email_id = $2
     ORDER BY position
"""

PART = """
    SELECT id, email_id, filename, content_type, disposition, content_id, inline, size, encoding, starts, ends
      FROM received_attachments
     WHERE team_id = $1 AND id = $2
"""

# The octets of one part, cut out by the database where the message lies in the row.
SPAN = """
    SELECT substring(data FROM ($3::bigint + 1)::integer FOR ($4::bigint - $3::bigint)::integer) AS data, blob
      FROM received_sources
     WHERE team_id = $1 AND id = $2
"""

EMAILS_FOR_EVENTS = """
    SELECT e.id, e.created_at, e.sender, e.to_list, e.bcc_list, e.cc_list, e.received_for, e.message_id,
           e.subject, e.attachments
      FROM received_emails e
     WHERE e.team_id = $1 AND e.id = ANY ($2::uuid[])
"""

PARTS_FOR_EVENTS = """
    SELECT id, email_id, filename, content_type, disposition, content_id
      FROM received_attachments
     WHERE team_id = $1 AND email_id = ANY ($2::uuid[])
     ORDER BY email_id, position
"""


class ReceivedFromAddress(NamedTuple):
    """An email that came from an address."""

    id: UUID
    created_at: datetime
    subject: str


class ReceivedEmailListRow(NamedTuple):
    """A row of the list; the `*_list` columns, `received_for` and `attachments` hold the JSON that the wire
    shows."""

    id: UUID
    to_list: str
    sender: str
    created_at: datetime
    subject: str
    bcc_list: str | None
    cc_list: str | None
    reply_to_list: str | None
    received_for: str
    message_id: str
    attachments: str | None


class ReceivedEmailRow(NamedTuple):
    """One received email without its message; `attachments` is how many there are."""

    id: UUID
    to_list: str
    sender: str
    created_at: datetime
    subject: str
    bcc_list: str | None
    cc_list: str | None
    reply_to_list: str | None
    received_for: str
    message_id: str
    attachments: int
    recipients: str
    mail_from: str
    client: str
    spf: str
    dkim: str
    dmarc: str
    spam_reason: str | None
    size: int
    complete: bool


class VerdictsRow(NamedTuple):
    """The verdicts on a received email; `verdicts` is None for mail from before they were stored."""

    id: UUID
    spf: str
    dkim: str
    dmarc: str
    spam_reason: str | None
    verdicts: str | None


class Source(NamedTuple):
    """The message of a received email: our trace fields, and its `size` octets in `data` or in a blob."""

    id: UUID
    trace: bytes
    size: int
    data: bytes | None
    blob: str | None
    parsed: str | None


class AttachmentPart(NamedTuple):
    """An attachment, and where its encoded octets lie in the message."""

    id: UUID
    email_id: UUID
    filename: str | None
    content_type: str
    disposition: str | None
    content_id: str | None
    inline: bool
    size: int
    encoding: str
    starts: int
    ends: int


class MessageSpan(NamedTuple):
    """A piece of a message, or the blob that the message lies in."""

    data: bytes | None
    blob: str | None


class ReceivedEmailOfEvent(NamedTuple):
    """A received email as its event shows it."""

    id: UUID
    created_at: datetime
    sender: str
    to_list: str
    bcc_list: str | None
    cc_list: str | None
    received_for: str
    message_id: str
    subject: str
    attachments: int


class EventPart(NamedTuple):
    """An attachment as the event shows it."""

    id: UUID
    email_id: UUID
    filename: str | None
    content_type: str
    disposition: str | None
    content_id: str | None


async def owner_of(pool: asyncpg.Pool, email_id: UUID) -> UUID | None:
    """Return the team whose email this is, for the operator. One look into the index for each team."""
    found: UUID | None = await pool.fetchval(
        """
        SELECT t.id FROM teams t
         WHERE EXISTS (SELECT FROM received_emails e WHERE e.team_id = t.id AND e.id = $1)
        """,
        email_id,
    )
    return found


async def page(db: TeamDb, page: Page) -> list[ReceivedEmailListRow]:
    return await db.all(ReceivedEmailListRow, LIST, *page.args)


async def with_message_id(
    db: TeamDb, message_id: str, before: UUID, limit: int
) -> list[ReceivedEmailListRow]:
    """Return the newest emails with this Message-ID before an id."""
    return await db.all(ReceivedEmailListRow, BY_MESSAGE_ID, message_id, before, limit)


async def id_behind(db: TeamDb, upper: UUID, lower: UUID, count: int) -> UUID | None:
    """Return the id of the last of so many emails before `upper`; None where there are fewer down to
    `lower`."""
    found: UUID | None = await db.value(ID_BEHIND, upper, lower, count - 1)
    return found


async def fitting(
    db: TeamDb, upper: UUID, lower: UUID, conditions: tuple[str | None, str | None, list[str]], limit: int
) -> list[ReceivedEmailListRow]:
    """Return the newest emails before `upper`, down to `lower`, whose sender holds the first text, that
    arrived for the second, and whose subject holds all of these words."""
    return await db.all(ReceivedEmailListRow, FITTING, upper, lower, *conditions, limit)


async def newest_id(db: TeamDb) -> UUID | None:
    found: UUID | None = await db.value(
        "SELECT id FROM received_emails WHERE team_id = $1 ORDER BY id DESC LIMIT 1"
    )
    return found


async def get(db: TeamDb, email_id: UUID) -> ReceivedEmailRow | None:
    return await db.one(ReceivedEmailRow, GET, email_id)


async def verdicts(db: TeamDb, email_id: UUID) -> VerdictsRow | None:
    return await db.one(VerdictsRow, VERDICTS, email_id)


async def verdicts_for_events(db: TeamDb, ids: Collection[UUID]) -> dict[UUID, VerdictsRow]:
    """Return the verdicts of those emails that still exist."""
    return {found.id: found for found in await db.all(VerdictsRow, VERDICTS_FOR_EVENTS, list(ids))}


async def source(db: TeamDb, email_id: UUID) -> Source | None:
    return await db.one(Source, SOURCE, email_id)


async def parts(db: TeamDb, email_id: UUID) -> list[AttachmentPart]:
    """Return the attachments in the order of the message."""
    return await db.all(AttachmentPart, PARTS, email_id)


async def part(db: TeamDb, attachment_id: UUID) -> AttachmentPart | None:
    return await db.one(AttachmentPart, PART, attachment_id)


async def span(db: TeamDb, email_id: UUID, start: int, end: int) -> MessageSpan | None:
    """Return the octets from `start` up to `end` of a message, where they lie in the row."""
    return await db.one(MessageSpan, SPAN, email_id, start, end)


async def emails_for_events(db: TeamDb, ids: Collection[UUID]) -> dict[UUID, ReceivedEmailOfEvent]:
    """Return the emails as their events show them, of those that still exist."""
    return {email.id: email for email in await db.all(ReceivedEmailOfEvent, EMAILS_FOR_EVENTS, list(ids))}


async def parts_for_events(db: TeamDb, ids: Collection[UUID]) -> dict[UUID, list[EventPart]]:
    """Return their attachments."""
    found: dict[UUID, list[EventPart]] = {}
    for part in await db.all(EventPart, PARTS_FOR_EVENTS, list(ids)):
        found.setdefault(part.email_id, []).append(part)
    return found


async def from_address(db: TeamDb, address: str, before: UUID, limit: int) -> list[ReceivedFromAddress]:
    """Return the newest emails before an id with this address, in lower case, in From."""
    return await db.all(ReceivedFromAddress, FROM_ADDRESS, address, before, limit)
