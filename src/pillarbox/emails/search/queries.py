"""SQL of finding emails. Where `$1` is null the statement is for all teams, for the operator: it goes from
team to team, by the keys of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

from pillarbox.emails.search.filters import FoundEmail, OriginColumns
from pillarbox.emails.search.terms import VERSION
from pillarbox.kernel.postgres.database import Source, TeamDb

# The newest blocks below $2 and above $3 that seem to have every term: each number of $4 names a bit. A block
# of another version seems to have everything. Then, without an end, what no block has yet: by the same
# snapshot, because what one statement sees as not described may be in a block at the next one.
BLOCKS = """
    (SELECT found.team_id, found.after_id, found.last_id
      FROM teams t
     CROSS JOIN LATERAL (
           SELECT b.team_id, b.after_id, b.last_id
             FROM search_blocks b
            WHERE b.team_id = t.id AND b.after_id < $2 AND b.last_id > $3
              AND (b.version <> $6
                   OR NOT EXISTS (SELECT
                                    FROM unnest($4::bigint[]) AS k (number)
                                   WHERE get_bit(b.bits, k.number % (8 * octet_length(b.bits))) = 0))
            ORDER BY b.team_id DESC, b.after_id DESC
            LIMIT $5) AS found
     WHERE t.id = $1 OR $1::uuid IS NULL
     ORDER BY found.last_id DESC
     LIMIT $5)
     UNION ALL
    SELECT t.id,
           coalesce((SELECT b.last_id
                       FROM search_blocks b
                      WHERE b.team_id = t.id
                      ORDER BY b.team_id DESC, b.after_id DESC
                      LIMIT 1), '00000000-0000-0000-0000-000000000000'),
           NULL
      FROM teams t
     WHERE t.id = $1 OR $1::uuid IS NULL
"""

# Emails that the history has an event of, newest first: one that few emails have.
WITH_EVENT = """
    SELECT found.team_id, found.id
      FROM teams t
     CROSS JOIN LATERAL (
           SELECT DISTINCT ON (h.email_id) h.team_id, h.email_id AS id
             FROM timeline h
            WHERE h.team_id = t.id AND h.kind = $2 AND h.email_id <= $3 AND h.email_id > $4
              AND h.kind NOT IN ('queued', 'sent', 'delivered')
            ORDER BY h.email_id DESC
            LIMIT $5) AS found
     WHERE t.id = $1 OR $1::uuid IS NULL
     ORDER BY found.id DESC
     LIMIT $5
"""

# Emails with work that is not done.
WITH_WORK = """
    SELECT found.team_id, found.id
      FROM teams t
     CROSS JOIN LATERAL (
           SELECT DISTINCT ON (d.email_id) d.team_id, d.email_id AS id
             FROM deliveries d
            WHERE d.team_id = t.id AND d.email_id <= $2 AND d.email_id > $3
            ORDER BY d.email_id DESC
            LIMIT $4) AS found
     WHERE t.id = $1 OR $1::uuid IS NULL
     ORDER BY found.id DESC
     LIMIT $4
"""

# The email of an id.
WITH_ID = """
    SELECT e.team_id, e.id
      FROM teams t
      JOIN emails e ON e.team_id = t.id AND e.id = $2
     WHERE t.id = $1 OR $1::uuid IS NULL
"""

# Of each range the newest emails that may fit. $6 has the words of the subject, $9 some of them as patterns
# that find them whole; a subject that is not ASCII is told elsewhere, as is a sender in quotes.
BY_EMAIL = """
    SELECT r.place, found.team_id, found.id, found.sender, found.domain_name, found.subject, true
      FROM unnest($1::uuid[], $2::uuid[], $3::uuid[]) WITH ORDINALITY AS r (team_id, after_id, last_id, place)
     CROSS JOIN LATERAL (
           SELECT e.team_id, e.id, e.sender, e.domain_name, e.subject
             FROM complete_emails e
            WHERE e.team_id = r.team_id AND e.id > r.after_id AND e.id <= r.last_id
              AND ($4::text IS NULL OR e.domain_name = $4)
              AND ($5::text IS NULL OR lower(e.sender COLLATE "C") LIKE $5 OR e.sender LIKE '%"@%')
              AND ($6::text[] IS NULL
                   OR (lower(e.subject COLLATE "C") LIKE ALL ($6) AND lower(e.subject COLLATE "C") ~ ALL ($9))
                   OR octet_length(e.subject) <> char_length(e.subject))
              AND ($7::text IS NULL
                   OR EXISTS (SELECT FROM recipients p
                               WHERE p.team_id = e.team_id AND p.email_id = e.id AND p.state = $7))
              AND ($10::uuid IS NULL OR e.key_id = $10)
              AND ($11::uuid IS NULL OR e.broadcast_id = $11)
              AND ($12::text IS NULL OR e.source = $12)
              AND ($13::text IS NULL OR e.tags::jsonb @> $13::text::jsonb)
              AND ($14::text IS NULL OR lower(e.message_id) = $14)
            ORDER BY e.team_id DESC, e.id DESC
            LIMIT $8) AS found
"""

# The same where the recipient is known, who is looked for first.
BY_RECIPIENT = """
    SELECT r.place, e.team_id, e.id, e.sender, e.domain_name, e.subject, e.has_origin
      FROM unnest($1::uuid[], $2::uuid[], $3::uuid[]) WITH ORDINALITY AS r (team_id, after_id, last_id, place)
     CROSS JOIN LATERAL (
           SELECT DISTINCT ON (p.email_id) p.email_id
             FROM recipients p
            WHERE p.team_id = r.team_id AND p.email_id > r.after_id AND p.email_id <= r.last_id
              AND ($4::text IS NULL OR p.address = $4)
              AND ($5::text IS NULL OR right(p.address, length($5)) = $5)
              AND ($6::text IS NULL OR p.state = $6)
            ORDER BY p.email_id DESC
            LIMIT $7) AS found
     CROSS JOIN LATERAL (
           SELECT k.team_id, k.id, k.sender, k.domain_name, k.subject,
                  ($8::uuid IS NULL OR k.key_id IS NOT DISTINCT FROM $8)
                  AND ($9::uuid IS NULL OR k.broadcast_id IS NOT DISTINCT FROM $9)
                  AND ($10::text IS NULL OR k.source = $10)
                  AND ($11::text IS NULL OR coalesce(k.tags::jsonb @> $11::text::jsonb, false))
                  AND ($12::text IS NULL OR lower(k.message_id) = $12) AS has_origin
             FROM complete_emails k
            WHERE k.team_id = r.team_id AND k.id = found.email_id
           OFFSET 0) AS e
"""

SHOWN = """
    SELECT e.team_id, e.id, e.message_id, e.created_at, e.sender, e.to_list, e.subject, e.bcc_list, e.cc_list,
           e.reply_to_list, e.last_event, e.scheduled_at
      FROM unnest($1::uuid[], $2::uuid[]) AS k (team_id, id)
     CROSS JOIN LATERAL (
           SELECT team_id, id, message_id, created_at, sender, to_list, subject, bcc_list, cc_list,
                  reply_to_list, last_event, scheduled_at
             FROM complete_emails
            WHERE team_id = k.team_id AND id = k.id
           OFFSET 0) AS e
     ORDER BY e.id DESC
"""

# Teams that have $2 emails and more behind their last block, as far as $1.
READY = """
    SELECT t.id AS team_id, b.after_id
      FROM teams t
     CROSS JOIN LATERAL (
           SELECT coalesce((SELECT k.last_id
                              FROM search_blocks k
                             WHERE k.team_id = t.id
                             ORDER BY k.team_id DESC, k.after_id DESC
                             LIMIT 1), '00000000-0000-0000-0000-000000000000') AS after_id) AS b
     WHERE EXISTS (SELECT
                     FROM emails e
                    WHERE e.team_id = t.id AND e.id > b.after_id AND e.id <= $1
                    ORDER BY e.team_id, e.id
                   OFFSET $2 - 1
                    LIMIT 1)
"""

DESCRIBED = r"""
    SELECT e.id, e.sender, e.domain_name, e.subject,
           coalesce((SELECT string_agg(p.address, E'\n') FROM recipients p
                     WHERE p.team_id = e.team_id AND p.email_id = e.id), '') AS addresses,
           e.source, CASE WHEN e.broadcast_id IS NULL THEN lower(e.message_id) END AS message_id,
           e.tags, e.key_id, e.broadcast_id
      FROM complete_emails e
     WHERE e.team_id = $1 AND e.id > $2 AND e.id <= $3
     ORDER BY e.team_id, e.id
     LIMIT $4
"""

ADD_BLOCK = """
    INSERT INTO search_blocks (team_id, after_id, last_id, emails, bits, version)
    VALUES ($1, $2, $3, $4, $5, $6)
    ON CONFLICT (team_id, after_id) DO NOTHING
"""

# Blocks that are old enough to be counted once more, with the number of emails that there are now.
UNSETTLED = """
    SELECT b.team_id, b.after_id, b.last_id, b.emails,
           (SELECT count(*) FROM emails e
             WHERE e.team_id = b.team_id AND e.id > b.after_id AND e.id <= b.last_id) AS counted
      FROM search_blocks b
     WHERE NOT b.is_settled AND b.last_id < $1
     ORDER BY b.last_id
     LIMIT $2
"""

OUTDATED = "SELECT team_id, after_id, last_id FROM search_blocks WHERE version < $1 LIMIT $2"

SETTLE = "UPDATE search_blocks SET is_settled = true WHERE team_id = $1 AND after_id = $2"

DESCRIBE_ANEW = """
    UPDATE search_blocks
       SET emails = $3, bits = $4, version = $5, is_settled = is_settled OR $6
     WHERE team_id = $1 AND after_id = $2
"""

DROP_AHEAD = "DELETE FROM search_blocks WHERE team_id = $1 AND last_id > $2"

DROP_EMPTY = """
    DELETE FROM search_blocks b
     WHERE b.team_id = $1
       AND b.last_id < coalesce((SELECT e.id FROM emails e
                                  WHERE e.team_id = $1 ORDER BY e.team_id, e.id LIMIT 1),
                                'ffffffff-ffff-ffff-ffff-ffffffffffff')
"""


class EmailRange(NamedTuple):
    """Emails of a team behind one id, as far as another one."""

    team_id: UUID
    after_id: UUID
    last_id: UUID


class CandidateEmail(NamedTuple):
    """An email of the range at `place` (counted from 1) that may fit; not without `has_origin`."""

    place: int
    team_id: UUID
    id: UUID
    sender: str
    domain_name: str
    subject: str
    has_origin: bool


class IndexedEmail(NamedTuple):
    """The fields of an email by which it can be found; `addresses` are lines, `tags` JSON text."""

    id: UUID
    sender: str
    domain_name: str
    subject: str
    addresses: str
    source: str
    message_id: str | None
    tags: str | None
    key_id: UUID | None
    broadcast_id: UUID | None


class UnindexedBlock(NamedTuple):
    """A block with the emails that it describes, and as many as there are."""

    team_id: UUID
    after_id: UUID
    last_id: UUID
    emails: int
    counted: int


async def blocks(
    source: Source, team_id: UUID | None, upper: UUID, lower: UUID, numbers: Sequence[int], limit: int
) -> tuple[list[EmailRange], list[EmailRange]]:
    """Return the newest blocks that may have all of the terms, and each team's emails that no
    block describes."""
    rows = await source.fetch(BLOCKS, team_id, upper, lower, numbers, limit, VERSION)
    seeming = [EmailRange._make(row) for row in rows if row[2] is not None]
    rest = [EmailRange(row[0], row[1], upper) for row in rows if row[2] is None and row[1] < upper]
    return seeming, rest


async def with_event(
    source: Source, team_id: UUID | None, kind: str, upper: UUID, lower: UUID, limit: int
) -> list[tuple[UUID, UUID]]:
    """Return the teams and ids of emails that such an event happened to."""
    return [(row[0], row[1]) for row in await source.fetch(WITH_EVENT, team_id, kind, upper, lower, limit)]


async def with_work(
    source: Source, team_id: UUID | None, upper: UUID, lower: UUID, limit: int
) -> list[tuple[UUID, UUID]]:
    """Return the teams and ids of emails that wait or are under way."""
    return [(row[0], row[1]) for row in await source.fetch(WITH_WORK, team_id, upper, lower, limit)]


async def with_id(source: Source, team_id: UUID | None, email_id: UUID) -> list[tuple[UUID, UUID]]:
    """Return the team and id of the email with this id."""
    return [(row[0], row[1]) for row in await source.fetch(WITH_ID, team_id, email_id)]


async def by_email(
    source: Source,
    ranges: Sequence[EmailRange],
    domain: str | None,
    sender: str | None,
    subject: Sequence[str] | None,
    whole: Sequence[str],
    state: str | None,
    limit: int,
    origin: OriginColumns,
) -> list[CandidateEmail]:
    """Return the candidates of each range; `sender` and `subject` are patterns of LIKE, `whole` are regular
    expressions, `state` is that of a recipient."""
    columns = zip(*ranges, strict=True)
    rows = await source.fetch(BY_EMAIL, *columns, domain, sender, subject, state, limit, whole, *origin)
    return [CandidateEmail._make(row) for row in rows]


async def by_recipient(
    source: Source,
    ranges: Sequence[EmailRange],
    address: str | None,
    domain: str | None,
    state: str | None,
    limit: int,
    origin: OriginColumns,
) -> list[CandidateEmail]:
    """Return the candidates of each range by one of their recipients; `domain` begins with `@`."""
    columns = zip(*ranges, strict=True)
    rows = await source.fetch(BY_RECIPIENT, *columns, address, domain, state, limit, *origin)
    return [CandidateEmail._make(row) for row in rows]


async def shown(source: Source, emails: Sequence[tuple[UUID, UUID]]) -> list[FoundEmail]:
    """Return these emails (team, id), newest first."""
    teams, ids = zip(*emails, strict=True) if emails else ((), ())
    return [FoundEmail(**row) for row in await source.fetch(SHOWN, teams, ids)]


async def teams(source: Source) -> list[UUID]:
    """Return every team: the blocks of each of them are gone through on their own."""
    return [row["id"] for row in await source.fetch("SELECT id FROM teams ORDER BY id")]


async def ready(source: Source, before: UUID, least: int) -> list[tuple[UUID, UUID]]:
    """Return the teams with so many emails that no block describes, each with the last email that
    one does."""
    return [(row[0], row[1]) for row in await source.fetch(READY, before, least)]


async def described(db: TeamDb, after: UUID, last: UUID, limit: int) -> list[IndexedEmail]:
    """Return the emails of a range with what they can be found by, oldest first."""
    rows = await db.source.fetch(DESCRIBED, db.team_id, after, last, limit)
    return [IndexedEmail._make(row) for row in rows]


async def add_block(db: TeamDb, after: UUID, last: UUID, emails: int, bits: bytes) -> bool:
    """Add a block; return False where somebody else has described these emails meanwhile."""
    return await db.run(ADD_BLOCK, after, last, emails, bits, VERSION) == 1


async def unsettled(source: Source, before: UUID, limit: int) -> list[UnindexedBlock]:
    """Return the blocks that end before an id and have not been counted once more, of any team."""
    return [UnindexedBlock._make(row) for row in await source.fetch(UNSETTLED, before, limit)]


async def outdated(source: Source, limit: int) -> list[EmailRange]:
    """Return the blocks of an older version, of any team."""
    return [EmailRange._make(row) for row in await source.fetch(OUTDATED, VERSION, limit)]


async def settle(db: TeamDb, after: UUID) -> None:
    """Count a block no more."""
    await db.run(SETTLE, after)


async def describe_anew(db: TeamDb, after: UUID, emails: int, bits: bytes, *, is_settled: bool) -> None:
    """Give a block another filter."""
    await db.run(DESCRIBE_ANEW, after, emails, bits, VERSION, is_settled)


async def drop_ahead(db: TeamDb, last: UUID) -> int:
    """Remove blocks that end behind an id; returns how many."""
    return await db.run(DROP_AHEAD, last)


async def drop_empty(db: TeamDb) -> int:
    """Remove blocks whose emails retention has removed; returns how many."""
    return await db.run(DROP_EMPTY)
