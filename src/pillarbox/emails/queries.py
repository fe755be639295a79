"""SQL of emails. `store` takes a whole group commit, of several teams at once; each of its rows names
its own team.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from pillarbox.emails.broadcast_copies.reading import shown_bodies
from pillarbox.emails.own_mail.redaction import REDACTED_TEXT, is_withheld
from pillarbox.emails.rows import CommitRows, ContentSlice, Origins
from pillarbox.kernel.postgres.combined_statement import Statement, combined, rows_json
from pillarbox.kernel.postgres.database import Connection, Source, TeamDb, literal
from pillarbox.kernel.wire.paging import Page
from pillarbox.timeline.queries import Wanted

# What accepting has to know of its teams: which addresses are suppressed, who subscribes to events, and in
# which people were erased.
SUPPRESSED_ADDRESSES = """
    SELECT s.team_id, s.address, s.origin, NULL::text[] AS events
      FROM unnest($1::text::uuid[], $2::text[]) AS k (team_id, address)
      JOIN suppressions s ON s.team_id = k.team_id AND s.address = k.address
     UNION ALL
    SELECT team_id, NULL, NULL, events
      FROM webhooks
     WHERE team_id = ANY ($3::text::uuid[]) AND status = 'enabled'
     UNION ALL
    SELECT k.team_id, NULL, 'erased', NULL
      FROM (SELECT DISTINCT j.team_id FROM unnest($1::text::uuid[]) AS j (team_id)) AS k
     WHERE EXISTS (SELECT FROM erasures e WHERE e.team_id = k.team_id)
"""

# Emails with their contents and their first line of history (`Timeline.opened_beside`), and for those with
# one recipient this one and its work: each comes as one object, which is read once. Bodies go as arrays: as
# JSON long ones would cost more to read than to store. The content of an email has its id. The last part
# returns what accepting has to know of its teams, as in `SUPPRESSED_ADDRESSES`.
STORE = """
    WITH accepted AS MATERIALIZED (
        SELECT k.*
          FROM json_to_recordset($4::text::json)
               AS k (place integer, team_id uuid, id uuid, created_at timestamptz, message_id text,
                     sender text, to_list json, cc_list json, bcc_list json, reply_to_list json, subject text,
                     tags json, scheduled_at timestamptz, topic_id uuid, key_id uuid, domain_id uuid,
                     domain_name text, state text, headers text, attachments smallint, role text,
                     address text, mailbox text, destination text, due_at timestamptz, leased boolean,
                     template_id uuid, link_places text, inbox_id uuid, entry_id uuid,
                     is_content_stored boolean, source text)
    ), heads AS (
        INSERT INTO emails (team_id, id, created_at, content_id, message_id, sender, to_list, cc_list,
                            bcc_list, reply_to_list, subject, tags, scheduled_at, topic_id, key_id, domain_id,
                            domain_name, last_event, last_event_at, template_id, inbox_id, source)
        SELECT team_id, id, created_at, id, message_id, sender, to_list, cc_list, bcc_list, reply_to_list,
               subject, tags, scheduled_at, topic_id, key_id, domain_id, domain_name, state, created_at,
               template_id, inbox_id, source
          FROM accepted
    ), bodies AS (
        INSERT INTO contents (team_id, id, created_at, html, text, headers, attachments, link_places)
        SELECT team_id, id, created_at, ($5::text[])[place], ($6::text[])[place], headers::json,
               coalesce(attachments, 0), link_places::json
          FROM accepted WHERE is_content_stored IS NOT TRUE
    ), reached AS (
        INSERT INTO recipients (team_id, email_id, position, role, address, mailbox, grp, state)
        SELECT team_id, id, 0, role, address, mailbox, 0, state FROM accepted WHERE address IS NOT NULL
    ), work AS (
        INSERT INTO deliveries (team_id, email_id, grp, destination, due_at, owner, leased_until, attempt,
                                released, first_attempt_at, created_at)
        SELECT team_id, id, 0, destination, coalesce(due_at, $9::timestamptz),
               CASE WHEN leased THEN $7::uuid END, CASE WHEN leased THEN $8::timestamptz END,
               CASE WHEN leased THEN 1 ELSE 0 END, scheduled_at IS NULL,
               CASE WHEN leased THEN created_at END, created_at
          FROM accepted WHERE address IS NOT NULL
    ), history AS (
        INSERT INTO timeline (team_id, id, email_id, at, kind)
        SELECT team_id, entry_id, id, created_at, state FROM accepted
    )
    SELECT s.team_id, s.address, s.origin, NULL::text[] AS events
      FROM unnest($1::text::uuid[], $2::text[]) AS k (team_id, address)
      JOIN suppressions s ON s.team_id = k.team_id AND s.address = k.address
     UNION ALL
    SELECT team_id, NULL, NULL, events
      FROM webhooks
     WHERE team_id = ANY ($3::text::uuid[]) AND status = 'enabled'
     UNION ALL
    SELECT k.team_id, NULL, 'erased', NULL
      FROM (SELECT DISTINCT j.team_id FROM unnest($1::text::uuid[]) AS j (team_id)) AS k
     WHERE EXISTS (SELECT FROM erasures e WHERE e.team_id = k.team_id)
"""

# Contents whose emails follow in the same transaction.
STORE_CONTENTS = """
    INSERT INTO contents (team_id, id, created_at, html, text, headers, attachments, link_places)
    SELECT k.team_id, k.id, k.created_at, ($2::text[])[k.place], ($3::text[])[k.place], k.headers::json,
           coalesce(k.attachments, 0), k.link_places::json
      FROM json_to_recordset($1::text::json)
           AS k (place integer, team_id uuid, id uuid, created_at timestamptz, headers text,
                 attachments smallint, link_places text)
"""

STORE_RECIPIENTS = """
    INSERT INTO recipients (team_id, email_id, position, role, address, mailbox, grp, state)
    SELECT k.*
      FROM json_to_recordset($1::text::json)
           AS k (team_id uuid, email_id uuid, position smallint, role text, address text, mailbox text,
                 grp smallint, state text)
"""

STORE_WORK = """
    INSERT INTO deliveries (team_id, email_id, grp, destination, due_at, owner, leased_until, attempt,
                            released, first_attempt_at, created_at)
    SELECT k.*
      FROM json_to_recordset($1::text::json)
           AS k (team_id uuid, email_id uuid, grp smallint, destination text, due_at timestamptz, owner uuid,
                 leased_until timestamptz, attempt integer, released boolean, first_attempt_at timestamptz,
                 created_at timestamptz)
"""

ATTACH = """
    INSERT INTO attachments (team_id, id, content_id, position, filename, content_type, cid, size, data,
                             blob, url, created_at)
    SELECT k.*
      FROM unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::smallint[], $5::text[], $6::text[], $7::text[],
                  $8::bigint[], $9::bytea[], $10::text[], $11::text[], $12::timestamptz[])
           AS k (team_id, id, content_id, position, filename, content_type, cid, size, data, blob, url,
                 created_at)
"""

WAITING_JOBS = """
    SELECT count(*) FROM (SELECT FROM jobs WHERE team_id = $1 AND kind = $2 LIMIT $3) AS w
"""

LOCK_KEYS = """
    SELECT k.at, pg_try_advisory_xact_lock(hashtextextended(k.name, 0)) AS held
      FROM unnest($1::integer[], $2::text[]) AS k (at, name)
"""

CLAIM_KEYS = """
    INSERT INTO idempotency_keys AS i (team_id, scope, key, fingerprint, status, body, created_at)
    SELECT k.*
      FROM unnest($1::uuid[], $2::text[], $3::text[], $4::bytea[], $5::smallint[], $6::bytea[],
                  $7::timestamptz[])
           AS k (team_id, scope, key, fingerprint, status, body, created_at)
     ORDER BY 1, 2, 3
    ON CONFLICT (team_id, scope, key) DO UPDATE
       SET fingerprint = excluded.fingerprint, status = excluded.status, body = excluded.body,
           created_at = excluded.created_at
     WHERE i.created_at <= $8
    RETURNING team_id, scope, key
"""

RELEASE_KEYS = """
    DELETE FROM idempotency_keys i
     USING unnest($1::uuid[], $2::text[], $3::text[]) AS k (team_id, scope, key)
     WHERE i.team_id = k.team_id AND i.scope = k.scope AND i.key = k.key
"""

EXISTING = """
    SELECT id FROM emails WHERE team_id = ANY ($1::uuid[]) AND id = ANY ($2::uuid[])
"""

# A server process that works for us although nobody reads its answer any more.
AT_WORK = """
    SELECT EXISTS (SELECT FROM pg_stat_activity
                    WHERE pid = $1 AND pid <> pg_backend_pid() AND state NOT LIKE 'idle%')
"""

LIST = """
    SELECT id, message_id, to_list, sender, created_at, subject, bcc_list, cc_list, reply_to_list,
           last_event, scheduled_at
      FROM ((SELECT id, message_id, to_list, sender, created_at, subject, bcc_list, cc_list,
                    reply_to_list, last_event, scheduled_at
               FROM complete_emails WHERE team_id = $1 AND id < $2 ORDER BY id DESC LIMIT $4)
            UNION ALL
            (SELECT id, message_id, to_list, sender, created_at, subject, bcc_list, cc_list,
                    reply_to_list, last_event, scheduled_at
               FROM complete_emails WHERE team_id = $1 AND id > $3 ORDER BY id LIMIT $4)
           ) AS page
"""

GET = """
    SELECT e.id, e.message_id, e.to_list, e.sender, e.created_at, e.subject, c.html, c.text, e.bcc_list,
           e.cc_list, e.reply_to_list, e.last_event, e.scheduled_at, e.tags, t.id AS topic_id, e.content_id,
           CASE WHEN e.broadcast_id IS NOT NULL
                THEN (SELECT r.personal FROM recipients r
                       WHERE r.team_id = e.team_id AND r.email_id = e.id AND r.position = 0) END AS personal,
           c.preview_text
      FROM complete_emails e
      JOIN contents c ON c.team_id = e.team_id AND c.id = e.content_id
      LEFT JOIN topics t ON t.team_id = e.team_id AND t.id = e.topic_id AND t.deleted_at IS NULL
     WHERE e.team_id = $1 AND e.id = $2
"""

OCTETS = """
    SELECT coalesce(octet_length(c.html), 0) + coalesce(octet_length(c.text), 0)
      FROM complete_emails e
      JOIN contents c ON c.team_id = e.team_id AND c.id = e.content_id
     WHERE e.team_id = $1 AND e.id = $2
"""

RESCHEDULE = """
    UPDATE emails SET scheduled_at = $3
     WHERE team_id = $1 AND id = $2 AND last_event = 'scheduled'
"""

ATTACHMENTS = """
    SELECT a.id, a.filename, a.content_type, a.cid, a.size, a.position
      FROM emails e
      JOIN attachments a ON a.team_id = e.team_id AND a.content_id = e.content_id
     WHERE e.team_id = $1 AND e.id = $2 AND a.size IS NOT NULL
     ORDER BY a.position
"""

ATTACHMENT_BYTES = """
    SELECT filename, content_type, size, data, blob
      FROM attachments
     WHERE team_id = $1 AND id = $2 AND size IS NOT NULL
"""

MEMBERS = """
    SELECT lower(email) FROM team_members WHERE team_id = $1
"""

EVENT_EMAILS = """
    SELECT e.id, e.created_at, e.message_id, e.sender, e.subject, e.tags, e.broadcast_id, e.template_id,
           c.headers,
           ARRAY(SELECT r.mailbox FROM recipients r
                  WHERE r.team_id = e.team_id AND r.email_id = e.id ORDER BY r.position) AS mailboxes
      FROM complete_emails e
      LEFT JOIN contents c ON c.team_id = e.team_id AND c.id = e.content_id
     WHERE e.team_id = $1 AND e.id = ANY ($2::uuid[])
"""

TEAM = """
    SELECT t.number, t.email FROM (SELECT id AS team_id, number, email FROM teams) AS t WHERE t.team_id = $1
"""


class EmailListRow(NamedTuple):
    """A row of the list; the `*_list` columns hold the JSON text that the wire shows."""

    id: UUID
    message_id: str
    to_list: str
    sender: str
    created_at: datetime
    subject: str
    bcc_list: str | None
    cc_list: str | None
    reply_to_list: str | None
    last_event: str
    scheduled_at: datetime | None


class EmailRow(NamedTuple):
    """One email with its content; `personal` and `preview_text` are those of a copy of a broadcast, whose
    bodies
    still have their placeholders."""

    id: UUID
    message_id: str
    to_list: str
    sender: str
    created_at: datetime
    subject: str
    html: str | None
    text: str | None
    bcc_list: str | None
    cc_list: str | None
    reply_to_list: str | None
    last_event: str
    scheduled_at: datetime | None
    tags: str | None
    topic_id: UUID | None
    content_id: UUID
    personal: str | None
    preview_text: str | None


class StoredAttachment(NamedTuple):
    """An attachment that has its bytes."""

    id: UUID
    filename: str
    content_type: str
    cid: str | None
    size: int
    position: int


class AttachmentBytes(NamedTuple):
    """Where the bytes of an attachment are: in the row or in the blob store."""

    filename: str
    content_type: str
    size: int
    data: bytes | None
    blob: str | None


class EmailOfEvent(NamedTuple):
    """An email as its events describe it; `mailboxes` are its recipients by position."""

    id: UUID
    created_at: datetime
    message_id: str
    sender: str
    subject: str
    tags: str | None
    broadcast_id: UUID | None
    template_id: UUID | None
    headers: str | None
    mailboxes: list[str]


class TeamAddress(NamedTuple):
    """Where a team is reached."""

    number: int
    email: str


def stores(rows: CommitRows) -> list[Statement]:
    """Return the statements that store what `STORE` does not: emails to several recipients have several, with
    work for each destination; and files."""
    found = []
    if rows.recipients:
        found.append(Statement(STORE_RECIPIENTS, (rows_json(rows.recipients),)))
        found.append(Statement(STORE_WORK, (rows_json(rows.deliveries),)))
    if rows.attachments:
        found.append(Statement(ATTACH, tuple(zip(*rows.attachments, strict=True))))
    return found


async def store(
    conn: Source,
    writes: Sequence[Statement],
    judged: Collection[tuple[UUID, str]],
    teams: Collection[UUID],
    rows: CommitRows | None = None,
) -> tuple[Origins, Wanted]:
    """Write all of it in one statement, with the emails of `rows`; returns which of the addresses `judged`
    their team has suppressed, and why, and which events the webhooks of `teams` want. The address "" stands
    for those of people who were erased in the team, which are not looked up here."""
    at, addresses = zip(*judged, strict=True) if judged else ((), ())
    last = Statement(SUPPRESSED_ADDRESSES, (literal(at), addresses, literal(teams)))
    if rows is not None and rows.emails:
        given = (rows_json(rows.emails), rows.html, rows.text, rows.owner, rows.leased_until, rows.now)
        last = Statement(STORE, (*last.args, *given))
    origins: Origins = {}
    wanted: dict[UUID, Counter[str]] = {}
    for row in await combined(conn, writes, last):
        if row["address"] is None and row["origin"] is not None:
            origins[row["team_id"], ""] = row["origin"]
        elif row["address"] is None:
            wanted.setdefault(row["team_id"], Counter()).update(row["events"])
        else:
            origins[row["team_id"], row["address"]] = row["origin"]
    return origins, wanted


async def store_contents(conn: Source, contents: ContentSlice) -> None:
    """Store the contents of emails that are stored by a later statement."""
    await conn.execute(STORE_CONTENTS, rows_json(contents.rows), contents.html, contents.text)


async def lock_keys(conn: Connection, names: Sequence[str]) -> set[int]:
    """Take the lock of each name without waiting; returns the indexes that were had."""
    rows = await conn.fetch(LOCK_KEYS, list(range(len(names))), list(names))
    return {row["at"] for row in rows if row["held"]}


async def claim_keys(
    conn: Connection, rows: Sequence[tuple[Any, ...]], expired: datetime
) -> set[tuple[UUID, str, str]]:
    """Store idempotency answers; returns the keys that were free (or older than `expired`)."""
    found = await conn.fetch(CLAIM_KEYS, *zip(*rows, strict=True), expired)
    return {(row["team_id"], row["scope"], row["key"]) for row in found}


async def release_keys(conn: Connection, keys: Sequence[tuple[UUID, str, str]]) -> None:
    """Let go of keys that this transaction has claimed."""
    await conn.execute(RELEASE_KEYS, *zip(*keys, strict=True))


async def existing(conn: Source, teams: Sequence[UUID], ids: Sequence[UUID]) -> set[UUID]:
    """Return which of these emails are stored; asked when a connection was lost during a commit."""
    return {row["id"] for row in await conn.fetch(EXISTING, teams, ids)}


async def is_at_work(conn: Source, backend: int) -> bool:
    """Return whether the server process of a connection that was lost still runs its last statement."""
    return bool(await conn.fetchval(AT_WORK, backend))


async def page(db: TeamDb, page: Page) -> list[EmailListRow]:
    return await db.all(EmailListRow, LIST, *page.args)


async def get(db: TeamDb, email_id: UUID) -> EmailRow | None:
    """Return the email as it was accepted; a copy of a broadcast with the values that it was made with. What
    mail of this installation to people says is withheld."""
    found = await db.one(EmailRow, GET, email_id)
    if found is None or found.personal is None:
        if found is not None and is_withheld(found.tags):
            return found._replace(html=None, text=REDACTED_TEXT)
        return found
    html, text = await shown_bodies(found.html, found.text, found.preview_text, found.personal)
    return found._replace(html=html, text=text)


async def octets(db: TeamDb, email_id: UUID) -> int | None:
    """Return how many octets the stored bodies of the email have; None where there is no such email."""
    found: int | None = await db.value(OCTETS, email_id)
    return found


async def reschedule(db: TeamDb, email_id: UUID, now: datetime) -> bool:
    return await db.run(RESCHEDULE, email_id, now) == 1


async def attachments(db: TeamDb, email_id: UUID) -> list[StoredAttachment]:
    """Return the attachments that are here, in the order of the request."""
    return await db.all(StoredAttachment, ATTACHMENTS, email_id)


async def attachment_bytes(db: TeamDb, attachment_id: UUID) -> AttachmentBytes | None:
    return await db.one(AttachmentBytes, ATTACHMENT_BYTES, attachment_id)


async def waiting_jobs(db: TeamDb, kind: str, limit: int) -> int:
    """Return how many jobs of a kind the team has, as far as `limit`."""
    found: int = await db.value(WAITING_JOBS, kind, limit)
    return found


async def members(db: TeamDb) -> set[str]:
    """Return the addresses of the team's members, in lower case."""
    return set(await db.values(MEMBERS))


async def event_emails(db: TeamDb, ids: Collection[UUID]) -> dict[UUID, EmailOfEvent]:
    """Return the data of these emails for events; without those that were removed."""
    return {email.id: email for email in await db.all(EmailOfEvent, EVENT_EMAILS, list(ids))}


async def team(db: TeamDb) -> TeamAddress | None:
    return await db.one(TeamAddress, TEAM)
