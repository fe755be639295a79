"""SQL of received mail. What stores takes a whole group commit, of several teams at once; each of its rows
names its own team."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from pillarbox.kernel.db import Connection, TeamDb, literal
from pillarbox.kernel.paging import Page

ATTACHMENTS = """
    team_id id email_id position filename content_type disposition content_id inline size encoding starts ends
""".split()  # noqa: SIM905

# All in one, for a small commit's cost is its round trips. What was seen longer ago than $2 is new again.
STORE = """
    WITH fresh AS (
        INSERT INTO received_seen AS s (team_id, fingerprint, at)
        SELECT k.team_id, k.fingerprint, $1
          FROM unnest($3::text::uuid[], $4::bytea[]) AS k (team_id, fingerprint)
         ORDER BY k.team_id, k.fingerprint
        ON CONFLICT (team_id, fingerprint) DO UPDATE SET at = excluded.at WHERE s.at <= $2
        RETURNING s.team_id, s.fingerprint
    ), emails AS (
        INSERT INTO received_emails (team_id, id, created_at, sender, to_list, cc_list, bcc_list,
                                     reply_to_list, subject, message_id, received_for, attachments,
                                     recipients, mail_from, client, spf, dkim, dmarc, spam_reason, size,
                                     complete)
        SELECT k.team_id, k.id, k.created_at, k.sender, k.to_list::json, k.cc_list::json, k.bcc_list::json,
               k.reply_to_list::json, k.subject, k.message_id, k.received_for::json, k.attachments,
               k.recipients::json, k.mail_from, k.client, k.spf, k.dkim, k.dmarc, k.spam_reason, k.size,
               k.complete
          FROM unnest($3::text::uuid[], $4::bytea[], $5::text::uuid[], $6::text::timestamptz[], $7::text[],
                      $8::text[], $9::text[], $10::text[], $11::text[], $12::text[], $13::text[], $14::text[],
                      $15::text::smallint[], $16::text[], $17::text[], $18::text[], $19::text[], $20::text[],
                      $21::text[], $22::text[], $23::text::bigint[], $24::text::boolean[])
               AS k (team_id, fingerprint, id, created_at, sender, to_list, cc_list, bcc_list, reply_to_list,
                     subject, message_id, received_for, attachments, recipients, mail_from, client, spf, dkim,
                     dmarc, spam_reason, size, complete)
          JOIN fresh f ON f.team_id = k.team_id AND f.fingerprint = k.fingerprint
    ), sources AS (
        INSERT INTO received_sources (team_id, id, trace, size, data, blob, parsed)
        SELECT k.team_id, k.id, k.trace, k.size, k.data, k.blob, k.parsed::json
          FROM unnest($3::text::uuid[], $4::bytea[], $5::text::uuid[], $25::bytea[], $23::text::bigint[],
                      $26::bytea[], $27::text[], $28::text[])
               AS k (team_id, fingerprint, id, trace, size, data, blob, parsed)
          JOIN fresh f ON f.team_id = k.team_id AND f.fingerprint = k.fingerprint
    )
    SELECT team_id, fingerprint FROM fresh
"""

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

GET = """
    SELECT id, to_list, sender, created_at, subject, bcc_list, cc_list, reply_to_list, received_for,
           message_id, attachments, recipients, mail_from, client, spf, dkim, dmarc, spam_reason, size,
           complete
      FROM received_emails
     WHERE team_id = $1 AND id = $2
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

TOLD = """
    SELECT e.id, e.created_at, e.sender, e.to_list, e.bcc_list, e.cc_list, e.received_for, e.message_id,
           e.subject, e.attachments
      FROM received_emails e
     WHERE e.team_id = $1 AND e.id = ANY ($2::uuid[])
"""

TOLD_PARTS = """
    SELECT id, email_id, filename, content_type, disposition, content_id
      FROM received_attachments
     WHERE team_id = $1 AND email_id = ANY ($2::uuid[])
     ORDER BY email_id, position
"""


class Row(NamedTuple):
    """What is stored of one message for one team; the `*_list` columns, `received_for`, `recipients` and
    `parsed` are JSON text."""

    team_id: UUID
    fingerprint: bytes
    id: UUID
    created_at: datetime
    sender: str
    to_list: str
    cc_list: str | None
    bcc_list: str | None
    reply_to_list: str | None
    subject: str
    message_id: str
    received_for: str
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
    trace: bytes
    data: bytes | None
    blob: str | None
    parsed: str | None


LITERAL = frozenset(("team_id", "id", "created_at", "attachments", "size", "complete"))
"""Columns of `Row` that go as one text."""


class ListedEmail(NamedTuple):
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


class StoredEmail(NamedTuple):
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


class Source(NamedTuple):
    """The message of a received email: our trace fields, and its `size` octets in `data` or in a blob."""

    id: UUID
    trace: bytes
    size: int
    data: bytes | None
    blob: str | None
    parsed: str | None


class Part(NamedTuple):
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


class Span(NamedTuple):
    """A piece of a message, or the blob that the message lies in."""

    data: bytes | None
    blob: str | None


class ToldEmail(NamedTuple):
    """A received email as its event tells of it."""

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


class ToldPart(NamedTuple):
    """An attachment as the event tells of it."""

    id: UUID
    email_id: UUID
    filename: str | None
    content_type: str
    disposition: str | None
    content_id: str | None


async def store(
    conn: Connection, rows: Sequence[Row], at: datetime, expired: datetime
) -> set[tuple[UUID, bytes]]:
    """Store received emails with their messages, but for those whose fingerprint their team has seen since
    `expired`; returns team and fingerprint of what is new. No two rows may have both in common."""
    columns = zip(*rows, strict=True)
    plain = [
        literal(column) if name in LITERAL else column
        for name, column in zip(Row._fields, columns, strict=True)
    ]
    found = await conn.fetch(STORE, at, expired, *plain)
    return {(row["team_id"], row["fingerprint"]) for row in found}


async def attach(conn: Connection, attachments: Sequence[tuple[Any, ...]]) -> None:
    await conn.copy_records_to_table("received_attachments", records=attachments, columns=ATTACHMENTS)


async def page(db: TeamDb, page: Page) -> list[ListedEmail]:
    return await db.all(ListedEmail, LIST, *page.args)


async def get(db: TeamDb, email_id: UUID) -> StoredEmail | None:
    return await db.one(StoredEmail, GET, email_id)


async def source(db: TeamDb, email_id: UUID) -> Source | None:
    return await db.one(Source, SOURCE, email_id)


async def parts(db: TeamDb, email_id: UUID) -> list[Part]:
    """The attachments in the order of the message."""
    return await db.all(Part, PARTS, email_id)


async def part(db: TeamDb, attachment_id: UUID) -> Part | None:
    return await db.one(Part, PART, attachment_id)


async def span(db: TeamDb, email_id: UUID, start: int, end: int) -> Span | None:
    """The octets from `start` up to `end` of a message, where they lie in the row."""
    return await db.one(Span, SPAN, email_id, start, end)


async def told(db: TeamDb, ids: Collection[UUID]) -> dict[UUID, ToldEmail]:
    """What the event tells of these emails, of those that are still here."""
    return {email.id: email for email in await db.all(ToldEmail, TOLD, list(ids))}


async def told_parts(db: TeamDb, ids: Collection[UUID]) -> dict[UUID, list[ToldPart]]:
    """Their attachments."""
    found: dict[UUID, list[ToldPart]] = {}
    for part in await db.all(ToldPart, TOLD_PARTS, list(ids)):
        found.setdefault(part.email_id, []).append(part)
    return found
