"""SQL that stores received mail: a whole group commit, of several teams at once; each row names its team."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

import msgspec
from msgspec.structs import replace

from pillarbox.kernel.postgres.combined_statement import Statement, combined
from pillarbox.kernel.postgres.database import Source

# All in one, for a commit's cost is its round trips. $4 are the rows (`ReceivedRow`), $5 the octets that
# they speak of. What was seen longer ago than $2 is new again. Where a team has a quota nothing is written
# unless $3 is true: what it has used is read after it, in the same transaction. Rows of teams are locked in
# order. What an inbox takes is left out and named: it is stored under the lock of the inbox
# (docs/decisions/0096).
STORE = """
    WITH given AS MATERIALIZED (
        SELECT k.*, t.daily_quota IS NOT NULL OR t.monthly_quota IS NOT NULL AS is_metered,
               k.candidates IS NOT NULL AND coalesce((
                    SELECT true
                      FROM directory_inboxes d
                     WHERE d.address = ANY (k.candidates) AND d.team_id = k.team_id
                     LIMIT 1), false) AS has_inbox
          FROM json_to_recordset($4::text::json)
               AS k (team_id uuid, fingerprint text, id uuid, created_at timestamptz, sender text,
                     to_list text, cc_list text, bcc_list text, reply_to_list text, subject text,
                     message_id text, received_for text, attachments smallint, recipients text,
                     mail_from text, client text, spf text, dkim text, dmarc text, spam_reason text,
                     verdicts text, size bigint, complete boolean, blob text, event_id uuid,
                     judged_event_id uuid, at integer, trace integer,
                     held integer, candidates text[], inboxes uuid[], files json)
          LEFT JOIN teams t ON t.id = k.team_id
    ), fresh AS (
        INSERT INTO received_seen AS s (team_id, fingerprint, at)
        SELECT k.team_id, decode(k.fingerprint, 'base64'), $1
          FROM given k
         WHERE NOT k.has_inbox
           AND ($3 OR NOT EXISTS (SELECT FROM given g WHERE g.is_metered AND NOT g.has_inbox))
         ORDER BY 1, 2
        ON CONFLICT (team_id, fingerprint) DO UPDATE SET at = excluded.at WHERE s.at <= $2
        RETURNING s.team_id, s.fingerprint
    ), stored AS MATERIALIZED (
        SELECT k.*
          FROM given k
          JOIN fresh f ON f.team_id = k.team_id AND f.fingerprint = decode(k.fingerprint, 'base64')
    ), emails AS (
        INSERT INTO received_emails (team_id, id, created_at, sender, to_list, cc_list, bcc_list,
                                     reply_to_list, subject, message_id, received_for, attachments,
                                     recipients, mail_from, client, spf, dkim, dmarc, spam_reason, verdicts,
                                     size, complete, inboxes)
        SELECT k.team_id, k.id, k.created_at, k.sender, k.to_list::json, k.cc_list::json, k.bcc_list::json,
               k.reply_to_list::json, k.subject, k.message_id, k.received_for::json, k.attachments,
               k.recipients::json, k.mail_from, k.client, k.spf, k.dkim, k.dmarc, k.spam_reason,
               k.verdicts::json, k.size, k.complete, k.inboxes
          FROM stored k
    ), sources AS (
        INSERT INTO received_sources (team_id, id, trace, size, data, blob, parsed)
        SELECT k.team_id, k.id, substring($5::bytea FROM k.at FOR k.trace), k.size,
               CASE WHEN k.blob IS NULL THEN substring($5::bytea FROM k.at + k.trace FOR k.held) END, k.blob,
               CASE WHEN k.blob IS NOT NULL
                    THEN convert_from(substring($5::bytea FROM k.at + k.trace FOR k.held), 'UTF8')::json END
          FROM stored k
    ), attached AS (
        INSERT INTO received_attachments (team_id, id, email_id, position, filename, content_type,
                                          disposition, content_id, inline, size, encoding, starts, ends)
        SELECT k.team_id, a.id, k.id, a.position, a.filename, a.content_type, a.disposition, a.content_id,
               a.inline, a.size, a.encoding, a.starts, a.ends
          FROM stored k
         CROSS JOIN LATERAL json_to_recordset(k.files)
               AS a (id uuid, position smallint, filename text, content_type text, disposition text,
                     content_id text, inline boolean, size bigint, encoding text, starts bigint, ends bigint)
         WHERE k.attachments > 0
    ), told AS (
        INSERT INTO webhook_deliveries (team_id, webhook_id, event_id, kind, at, subject_id, epoch, due_at)
        SELECT k.team_id, w.id, e.id, e.kind, k.created_at, k.id, w.epoch,
               CASE w.kind WHEN 'listener' THEN 'infinity' ELSE k.created_at END
          FROM stored k
          JOIN webhooks w ON w.team_id = k.team_id AND w.status = 'enabled'
         CROSS JOIN LATERAL (VALUES (k.event_id, 'email.received'), (k.judged_event_id, 'email.judged'))
               AS e (id, kind)
         WHERE e.kind = ANY (w.events)
        RETURNING team_id
    ), counted AS (
        INSERT INTO usage_days AS u (team_id, day, received, octets)
        SELECT k.team_id, k.created_at::date, count(*), sum(k.size) FROM stored k GROUP BY 1, 2 ORDER BY 1, 2
        ON CONFLICT (team_id, day)
        DO UPDATE SET received = u.received + excluded.received, octets = u.octets + excluded.octets
    )
    SELECT k.id, k.is_metered, true AS is_stored,
           EXISTS (SELECT FROM told) OR (k.candidates IS NULL AND EXISTS (
                SELECT FROM webhooks w WHERE w.team_id = k.team_id AND w.status = 'enabled')) AS has_event,
           false AS has_inbox
      FROM stored k
     UNION ALL
    SELECT k.id, true, false, false, false FROM given k WHERE k.is_metered AND NOT k.has_inbox AND NOT $3
     UNION ALL
    SELECT k.id, k.is_metered, false, false, true FROM given k WHERE k.has_inbox
"""


class FileRow(msgspec.Struct, frozen=True):
    """The row of an attachment."""

    id: UUID
    position: int
    filename: str | None
    content_type: str
    disposition: str | None
    content_id: str | None
    inline: bool
    size: int
    encoding: str
    starts: int
    ends: int


class ReceivedRow(msgspec.Struct, frozen=True):
    """The row of one message for one team; the `*_list` columns, `received_for` and `recipients` are JSON
    text. From `at` on, the octets of the statement hold `trace` octets of trace fields, then `held` octets of
    the message. Where the message lies in a blob, the latter are its ParsedColumns as JSON. `candidates` are
    the addresses that may be those of inboxes. It is None where `inboxes` names the inboxes that have the
    message; such a message has events of its own."""

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
    verdicts: str
    size: int
    complete: bool
    blob: str | None
    event_id: UUID
    judged_event_id: UUID
    trace: int
    held: int
    candidates: tuple[str, ...] | None
    files: tuple[FileRow, ...] | None
    inboxes: tuple[UUID, ...] | None = None
    at: int = 1


def with_inboxes(row: ReceivedRow, inboxes: tuple[UUID, ...]) -> ReceivedRow:
    """Return the row of a message that these inboxes have; it is stored whatever inboxes there are."""
    return replace(row, candidates=None, inboxes=inboxes or None)


class WrittenRow(NamedTuple):
    """A row that is stored, or one whose team has a quota, for which nothing was. `has_event`: something of
    all that was stored may wait for the dispatcher of webhooks. `has_inbox`: an inbox takes it, so it is not
    stored."""

    id: UUID
    is_metered: bool
    is_stored: bool
    has_event: bool
    has_inbox: bool


_encode = msgspec.json.Encoder().encode


async def store(
    source: Source,
    mails: Sequence[tuple[ReceivedRow, bytes]],
    now: datetime,
    expired: datetime,
    *,
    metered: bool,
    beside: Sequence[Statement] = (),
) -> list[WrittenRow]:
    """Store received emails, each with its octets, its attachments, its events and its unit, or none of them.

    Left out is what its team has seen since `expired`, and what an inbox takes. Unless `metered`, nothing
    is stored where one of the teams has a quota; then the answer names its rows. No two rows may have team
    and fingerprint in common. The statements `beside` it are carried out in any case, in the same round trip.
    """
    rows, place = [], 1
    for row, octets in mails:
        rows.append(replace(row, at=place))
        place += len(octets)
    given = _encode(rows).decode()
    octets = b"".join([octets for _, octets in mails])
    found = await combined(source, beside, Statement(STORE, (now, expired, metered, given, octets)))
    return [WrittenRow(*row) for row in found]


# Across teams: each row names its team.
SEEN = """
    SELECT s.team_id, s.fingerprint
      FROM unnest($1::uuid[], $2::bytea[]) AS k (team_id, fingerprint)
      JOIN received_seen s ON s.team_id = k.team_id AND s.fingerprint = k.fingerprint AND s.at > $3
"""


async def seen(
    source: Source, keys: Sequence[tuple[UUID, bytes]], expired: datetime
) -> set[tuple[UUID, bytes]]:
    """Return those of these messages that their teams have seen since `expired`."""
    rows = await source.fetch(SEEN, *map(list, zip(*keys, strict=True)), expired)
    return {(row["team_id"], row["fingerprint"]) for row in rows}
