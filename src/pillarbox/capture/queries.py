"""SQL of captured mail. These statements cross teams: the capture page is the operator's, who sees every
mail that would have left the machine. Writing takes a batch; each of its rows names its own team.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple
from uuid import UUID

from pillarbox.kernel.postgres.database import Connection, Source, TeamDb
from pillarbox.kernel.security.sealed_values import SealedColumn
from pillarbox.kernel.wire.paging import Page

ADD_RECIPIENTS = """
    UPDATE captured c
       SET recipients = c.recipients || ARRAY(
               SELECT r.value
                 FROM json_array_elements_text(k.recipients::json) WITH ORDINALITY AS r (value, place)
                WHERE r.value <> ALL (c.recipients) ORDER BY r.place)
      FROM unnest($1::uuid[], $2::uuid[], $3::text[]) AS k (team_id, email_id, recipients)
     WHERE c.team_id = k.team_id AND c.email_id = k.email_id
    RETURNING c.team_id, c.email_id
"""

INSERT = """
    INSERT INTO captured AS c (team_id, id, email_id, at, mail_from, recipients, sender, subject, size, data,
                               blob, sealed)
    SELECT k.team_id, k.id, k.email_id, k.at, k.mail_from,
           ARRAY(SELECT r.value
                   FROM json_array_elements_text(k.recipients::json) WITH ORDINALITY AS r (value, place)
                  ORDER BY r.place),
           k.sender, k.subject, k.size, k.data, k.blob, k.sealed
      FROM unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::timestamptz[], $5::text[], $6::text[], $7::text[],
                  $8::text[], $9::bigint[], $10::bytea[], $11::text[], $12::boolean[])
           AS k (team_id, id, email_id, at, mail_from, recipients, sender, subject, size, data, blob, sealed)
     ORDER BY k.team_id, k.email_id
    ON CONFLICT (team_id, email_id) DO UPDATE
       SET recipients = c.recipients || ARRAY(
               SELECT r.value FROM unnest(excluded.recipients) WITH ORDINALITY AS r (value, place)
                WHERE r.value <> ALL (c.recipients) ORDER BY r.place)
    RETURNING c.id
"""

# Towards older mails, from $1 down, or towards newer ones, from $2 up; the other one is null. $4 to $7 are
# patterns of which one must match, or null; $8 is the lowest id of interest. Mail that was received stands
# among mail that would have left.
OLDER = """
    SELECT team_id, id, email_id, at, mail_from, recipients, sender, subject, size, inbound
      FROM ((SELECT c.team_id, c.id, c.email_id, c.at, c.mail_from, c.recipients, c.sender, c.subject, c.size,
                    false AS inbound
               FROM captured c
              WHERE c.id < $1 AND $2::uuid IS NULL AND c.id >= $8
                AND ($4::text[] IS NULL OR c.sender ILIKE ANY ($4) OR c.subject ILIKE ANY ($4)
                     OR EXISTS (SELECT 1 FROM unnest(c.recipients) AS r WHERE r ILIKE ANY ($4)))
                AND ($5::text[] IS NULL
                     OR EXISTS (SELECT 1 FROM unnest(c.recipients) AS r WHERE r ILIKE ANY ($5)))
                AND ($6::text[] IS NULL OR c.sender ILIKE ANY ($6))
                AND ($7::text[] IS NULL OR c.subject ILIKE ANY ($7))
              ORDER BY c.id DESC LIMIT $3)
            UNION ALL
            (SELECT found.*
               FROM teams t
              CROSS JOIN LATERAL (
                    SELECT e.team_id, e.id, e.id AS email_id, e.created_at AS at, e.mail_from, k.recipients,
                           e.sender, e.subject, e.size, true AS inbound
                      FROM received_emails e
                     CROSS JOIN LATERAL (
                           SELECT ARRAY(SELECT json_array_elements_text(e.recipients)) AS recipients) AS k
                     WHERE e.team_id = t.id AND e.id < $1 AND $2::uuid IS NULL AND e.id >= $8
                       AND ($4::text[] IS NULL OR e.sender ILIKE ANY ($4) OR e.subject ILIKE ANY ($4)
                            OR EXISTS (SELECT 1 FROM unnest(k.recipients) AS r WHERE r ILIKE ANY ($4)))
                       AND ($5::text[] IS NULL
                            OR EXISTS (SELECT 1 FROM unnest(k.recipients) AS r WHERE r ILIKE ANY ($5)))
                       AND ($6::text[] IS NULL OR e.sender ILIKE ANY ($6))
                       AND ($7::text[] IS NULL OR e.subject ILIKE ANY ($7))
                     ORDER BY e.id DESC LIMIT $3) AS found)) AS page
     ORDER BY id DESC
     LIMIT $3
"""

NEWER = """
    SELECT team_id, id, email_id, at, mail_from, recipients, sender, subject, size, inbound
      FROM ((SELECT c.team_id, c.id, c.email_id, c.at, c.mail_from, c.recipients, c.sender, c.subject, c.size,
                    false AS inbound
               FROM captured c
              WHERE c.id > $2 AND $1::uuid IS NULL AND c.id >= $8
                AND ($4::text[] IS NULL OR c.sender ILIKE ANY ($4) OR c.subject ILIKE ANY ($4)
                     OR EXISTS (SELECT 1 FROM unnest(c.recipients) AS r WHERE r ILIKE ANY ($4)))
                AND ($5::text[] IS NULL
                     OR EXISTS (SELECT 1 FROM unnest(c.recipients) AS r WHERE r ILIKE ANY ($5)))
                AND ($6::text[] IS NULL OR c.sender ILIKE ANY ($6))
                AND ($7::text[] IS NULL OR c.subject ILIKE ANY ($7))
              ORDER BY c.id LIMIT $3)
            UNION ALL
            (SELECT found.*
               FROM teams t
              CROSS JOIN LATERAL (
                    SELECT e.team_id, e.id, e.id AS email_id, e.created_at AS at, e.mail_from, k.recipients,
                           e.sender, e.subject, e.size, true AS inbound
                      FROM received_emails e
                     CROSS JOIN LATERAL (
                           SELECT ARRAY(SELECT json_array_elements_text(e.recipients)) AS recipients) AS k
                     WHERE e.team_id = t.id AND e.id > $2 AND $1::uuid IS NULL AND e.id >= $8
                       AND ($4::text[] IS NULL OR e.sender ILIKE ANY ($4) OR e.subject ILIKE ANY ($4)
                            OR EXISTS (SELECT 1 FROM unnest(k.recipients) AS r WHERE r ILIKE ANY ($4)))
                       AND ($5::text[] IS NULL
                            OR EXISTS (SELECT 1 FROM unnest(k.recipients) AS r WHERE r ILIKE ANY ($5)))
                       AND ($6::text[] IS NULL OR e.sender ILIKE ANY ($6))
                       AND ($7::text[] IS NULL OR e.subject ILIKE ANY ($7))
                     ORDER BY e.id LIMIT $3) AS found)) AS page
     ORDER BY id
     LIMIT $3
"""

GET = """
    SELECT team_id, id, email_id, at, mail_from, recipients, sender, subject, size, inbound
      FROM (SELECT team_id, id, email_id, at, mail_from, recipients, sender, subject, size, false AS inbound
              FROM captured WHERE id = $1
            UNION ALL
            SELECT e.team_id, e.id, e.id, e.created_at, e.mail_from,
                   ARRAY(SELECT json_array_elements_text(e.recipients)), e.sender, e.subject, e.size, true
              FROM teams t
              JOIN received_emails e ON e.team_id = t.id AND e.id = $1) AS one
     ORDER BY team_id LIMIT 1
"""

BYTES = """
    SELECT data, blob, sealed FROM captured WHERE team_id = $1 AND id = $2
    UNION ALL
    SELECT data, blob, false FROM received_sources WHERE team_id = $1 AND id = $2
"""

CAPTURED: Final = SealedColumn(
    table="captured",
    sentence="The captured mail {id}",
    cure="it cannot be read any more: whoever it is for can ask for another one.",
    read="""
    SELECT team_id, id, data AS sealed, id::text AS owner
      FROM captured
     WHERE sealed AND data IS NOT NULL
     ORDER BY team_id, id
    """,
    replace="""
    UPDATE captured SET data = $4 WHERE team_id = $1 AND id = $2 AND data = $3
    """,
)

COUNT = """
    SELECT count(team_id) AS mails, COALESCE(sum(size), 0)::bigint AS bytes,
           EXISTS (SELECT team_id FROM received_emails) AS has_received
      FROM captured
"""

DROP_OLDEST = """
    WITH excess AS (
        SELECT COALESCE(sum(size), 0) - $1::bigint AS bytes FROM captured
    ), oldest AS (
        SELECT team_id, id, sum(size) OVER (ORDER BY id, team_id) - size AS before
          FROM (SELECT team_id, id, size FROM captured ORDER BY id, team_id LIMIT $2) AS first_ones
    )
    DELETE FROM captured c
     USING oldest o, excess e
     WHERE c.team_id = o.team_id AND c.id = o.id AND o.before < e.bytes
    RETURNING c.blob
"""

NEWEST = """
    SELECT id FROM captured ORDER BY id DESC, team_id DESC LIMIT 1
"""

CLEAR = """
    DELETE FROM captured c
     USING (SELECT team_id, id FROM captured WHERE id <= $1 ORDER BY id LIMIT $2) AS k
     WHERE c.team_id = k.team_id AND c.id = k.id
    RETURNING c.blob
"""


OF_EMAIL = """
    SELECT email_id, size, data, blob FROM captured WHERE team_id = $1 AND email_id = $2 AND NOT sealed
"""


class CapturedOriginal(NamedTuple):
    """The message of an email, in the row or in the blob store."""

    email_id: UUID
    size: int
    data: bytes | None
    blob: str | None


class CapturedRow(NamedTuple):
    """A captured mail without its bytes. `recipients` is the envelope, `sender` the From of the header;
    `inbound` is mail that was received."""

    team_id: UUID
    id: UUID
    email_id: UUID
    at: datetime
    mail_from: str
    recipients: Sequence[str]
    sender: str
    subject: str
    size: int
    inbound: bool


class RawMail(NamedTuple):
    """Where the bytes of a mail are: in the row or in the blob store."""

    data: bytes | None
    blob: str | None
    sealed: bool


class CaptureCounts(NamedTuple):
    """How much was captured, and whether any mail was received."""

    mails: int
    bytes: int
    has_received: bool


async def add_recipients(conn: Connection, rows: Sequence[tuple[UUID, UUID, str]]) -> set[tuple[UUID, UUID]]:
    """Add recipients (JSON text) to mails that are stored already; returns which ones those are."""
    found = await conn.fetch(ADD_RECIPIENTS, *zip(*rows, strict=True))
    return {(row["team_id"], row["email_id"]) for row in found}


async def insert(conn: Connection, rows: Sequence[tuple[Any, ...]]) -> set[UUID]:
    """Store mails, or add their recipients to the row that has the email; the ids of the rows that count."""
    return {row["id"] for row in await conn.fetch(INSERT, *zip(*rows, strict=True))}


async def search(
    db: Source, page: Page, patterns: Sequence[Sequence[str] | None], lowest: UUID
) -> list[CapturedRow]:
    """Return a page of mails; `patterns` are of anything, recipient, sender, subject."""
    sql = NEWER if page.before else OLDER
    return [CapturedRow(**row) for row in await db.fetch(sql, *page.args, *patterns, lowest)]


async def get(db: Source, captured_id: UUID) -> CapturedRow | None:
    row = await db.fetchrow(GET, captured_id)
    return None if row is None else CapturedRow(**row)


async def raw_mail(db: Source, team_id: UUID, captured_id: UUID) -> RawMail | None:
    row = await db.fetchrow(BYTES, team_id, captured_id)
    return None if row is None else RawMail(**row)


async def of_email(db: TeamDb, email_id: UUID) -> CapturedOriginal | None:
    """Return the captured message of an email, unless it is sealed."""
    return await db.one(CapturedOriginal, OF_EMAIL, email_id)


async def count(db: Source) -> CaptureCounts:
    (row,) = await db.fetch(COUNT)
    return CaptureCounts(**row)


async def drop_oldest(db: Source, limit_bytes: int, limit: int) -> list[str | None]:
    """Remove up to `limit` of the oldest mails beyond the limit; a blob key or None for each of them."""
    return [row["blob"] for row in await db.fetch(DROP_OLDEST, limit_bytes, limit)]


async def newest(db: Source) -> UUID | None:
    found: UUID | None = await db.fetchval(NEWEST)
    return found


async def clear(db: Source, up_to: UUID, limit: int) -> list[str | None]:
    """Remove up to `limit` mails no newer than `up_to`; a blob key or None for each of them."""
    return [row["blob"] for row in await db.fetch(CLEAR, up_to, limit)]
