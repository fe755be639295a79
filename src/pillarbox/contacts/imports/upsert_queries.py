"""SQL that applies the rows of a batch: set-based, inside the caller's transaction (contact-imports.md 6).

The rows are copied into a temporary table and merged into the contacts by one statement, in the order of
addresses, which locks every contact of the batch.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

import asyncpg

from pillarbox.kernel.postgres.database import Connection

CREATE: Final = """
    CREATE TEMPORARY TABLE import_rows (
        id uuid, address text, email text, first_name text, last_name text, unsubscribed boolean, properties
        jsonb
    ) ON COMMIT DROP
"""
COLUMNS: Final = ("id", "address", "email", "first_name", "last_name", "unsubscribed", "properties")

# Where some rows say something about the subscription and others do not, each kind has a statement: all
# contacts are locked before, in one order.
LOCK: Final = """
    SELECT count(*) FROM (
        SELECT c.id
          FROM import_rows r
          JOIN contacts c ON c.team_id = $1 AND c.address = r.address
         ORDER BY r.address COLLATE "C"
           FOR NO KEY UPDATE OF c
    ) AS locked
"""

# What came back of the first part was written; a contact that exists and would not change is locked and not
# written.
UPSERT: Final = """
    WITH written AS (
        INSERT INTO contacts AS c
               (team_id, id, address, email, first_name, last_name, unsubscribed, properties, created_at,
                updated_at, import_id, imported_at)
        SELECT $1, r.id, r.address, r.email, r.first_name, r.last_name, coalesce(r.unsubscribed, false),
               r.properties, $2, $2, $7, $2
          FROM import_rows r
         WHERE (r.unsubscribed IS NOT NULL) = $6
         ORDER BY r.address COLLATE "C"
        ON CONFLICT ON CONSTRAINT contacts_team_address_key DO UPDATE
           SET first_name = coalesce(excluded.first_name, c.first_name),
               last_name = coalesce(excluded.last_name, c.last_name),
               unsubscribed = CASE WHEN $6 THEN excluded.unsubscribed ELSE c.unsubscribed END,
               properties = c.properties || excluded.properties,
               updated_at = greatest(c.updated_at, excluded.updated_at),
               imported_at = CASE WHEN c.import_id = $7 AND c.imported_at = c.updated_at
                                  THEN greatest(c.updated_at, excluded.updated_at)
                                  ELSE c.imported_at END
         WHERE (excluded.first_name IS NOT NULL AND excluded.first_name IS DISTINCT FROM c.first_name)
            OR (excluded.last_name IS NOT NULL AND excluded.last_name IS DISTINCT FROM c.last_name)
            OR ($6 AND excluded.unsubscribed <> c.unsubscribed)
            OR NOT c.properties @> excluded.properties
        RETURNING c.id, c.xmax = 0 AS is_new
    ), joined AS (
        INSERT INTO segment_members (team_id, segment_id, contact_id, added_at)
        SELECT $1, s.id, w.id, $2 FROM written w CROSS JOIN unnest($3::uuid[]) AS s (id)
        ON CONFLICT DO NOTHING
    ), chosen AS (
        INSERT INTO topic_choices AS t (team_id, contact_id, topic_id, subscription, chosen_at)
        SELECT $1, w.id, k.id, k.subscription, $2
          FROM written w
         CROSS JOIN unnest($4::uuid[], $5::text[]) AS k (id, subscription)
        ON CONFLICT (team_id, contact_id, topic_id) DO UPDATE
           SET subscription = excluded.subscription, chosen_at = excluded.chosen_at
         WHERE t.subscription <> excluded.subscription
    )
    SELECT count(*) AS written, count(*) FILTER (WHERE is_new) AS created FROM written
"""

SKIP: Final = """
    WITH written AS (
        INSERT INTO contacts
               (team_id, id, address, email, first_name, last_name, unsubscribed, properties, created_at,
                updated_at, import_id, imported_at)
        SELECT $1, r.id, r.address, r.email, r.first_name, r.last_name, coalesce(r.unsubscribed, false),
               r.properties, $2, $2, $6, $2
          FROM import_rows r
         ORDER BY r.address COLLATE "C"
        ON CONFLICT ON CONSTRAINT contacts_team_address_key DO NOTHING
        RETURNING id
    ), joined AS (
        INSERT INTO segment_members (team_id, segment_id, contact_id, added_at)
        SELECT $1, s.id, w.id, $2 FROM written w CROSS JOIN unnest($3::uuid[]) AS s (id)
        ON CONFLICT DO NOTHING
    ), chosen AS (
        INSERT INTO topic_choices (team_id, contact_id, topic_id, subscription, chosen_at)
        SELECT $1, w.id, k.id, k.subscription, $2
          FROM written w
         CROSS JOIN unnest($4::uuid[], $5::text[]) AS k (id, subscription)
        ON CONFLICT DO NOTHING
    )
    SELECT count(*) AS written, count(*) AS created FROM written
"""

# Of the contacts that exist and were not written; their rows are locked since `UPSERT`. Who is new in a
# segment has changed, as everywhere else.
BELONG: Final = """
    WITH known AS MATERIALIZED (
        SELECT c.id
          FROM import_rows r
          JOIN contacts c ON c.team_id = $1 AND c.address = r.address
    ), joined AS (
        INSERT INTO segment_members (team_id, segment_id, contact_id, added_at)
        SELECT $1, s.id, k.id, $2 FROM known k CROSS JOIN unnest($3::uuid[]) AS s (id)
        ON CONFLICT DO NOTHING
        RETURNING contact_id
    ), chosen AS (
        INSERT INTO topic_choices AS t (team_id, contact_id, topic_id, subscription, chosen_at)
        SELECT $1, c.id, k.id, k.subscription, $2
          FROM known c
         CROSS JOIN unnest($4::uuid[], $5::text[]) AS k (id, subscription)
        ON CONFLICT (team_id, contact_id, topic_id) DO UPDATE
           SET subscription = excluded.subscription, chosen_at = excluded.chosen_at
         WHERE t.subscription <> excluded.subscription
    )
    UPDATE contacts c
       SET updated_at = greatest(c.updated_at, $2)
      FROM (SELECT DISTINCT contact_id FROM joined) AS j
     WHERE c.team_id = $1 AND c.id = j.contact_id
"""


class UpsertCounts(NamedTuple):
    """Contacts that the batch made or changed, and how many of them are new."""

    contacts: int
    created: int


@dataclass(frozen=True, slots=True)
class UpsertTarget:
    """Where the rows go: segments that the contacts join, and what they choose of topics; both are held. New
    contacts are those of the import."""

    team_id: UUID
    import_id: UUID
    segments: Sequence[UUID]
    topics: Mapping[UUID, str]


@dataclass(frozen=True, slots=True)
class StagedRows:
    """The staged rows of a batch: `count` lines for COPY, `given` of which say something about the
    subscription."""

    count: int
    given: int
    lines: AsyncIterator[bytes]


async def stage(conn: Connection, rows: StagedRows) -> None:
    """Put the rows where the other statements find them."""
    await conn.execute(CREATE)
    await conn.copy_to_table("import_rows", source=rows.lines, columns=COLUMNS)


async def staged_addresses(conn: Connection) -> list[str]:
    """Return the addresses of the staged rows."""
    return [row["address"] for row in await conn.fetch("SELECT address FROM import_rows")]


async def unstage(conn: Connection, addresses: Sequence[str]) -> None:
    """Take the rows of these addresses away again."""
    if addresses:
        await conn.execute("DELETE FROM import_rows WHERE address = ANY ($1::text[])", addresses)


async def upsert(conn: Connection, rows: StagedRows, target: UpsertTarget, now: datetime) -> UpsertCounts:
    """Make the contacts that do not exist, and change of the others what the rows give."""
    args = (target.team_id, now, target.segments, list(target.topics), list(target.topics.values()))
    kinds = [is_given for is_given, count in ((False, rows.count - rows.given), (True, rows.given)) if count]
    if len(kinds) > 1:
        await conn.execute(LOCK, target.team_id)
    found = [_written(await conn.fetchrow(UPSERT, *args, is_given, target.import_id)) for is_given in kinds]
    written = UpsertCounts(sum([one.contacts for one in found]), sum([one.created for one in found]))
    if written.contacts < rows.count and (target.segments or target.topics):
        await conn.execute(BELONG, *args)
    return written


async def insert(conn: Connection, rows: StagedRows, target: UpsertTarget, now: datetime) -> UpsertCounts:
    """Make the contacts that do not exist; the others are left as they are."""
    args = (target.team_id, now, target.segments, list(target.topics), list(target.topics.values()))
    return _written(await conn.fetchrow(SKIP, *args, target.import_id))


def _written(row: asyncpg.Record | None) -> UpsertCounts:
    assert row is not None
    return UpsertCounts(*row)
