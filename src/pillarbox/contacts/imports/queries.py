"""SQL of imports: their rows, their errors and their job."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import asyncpg

from pillarbox.contacts import segment_queries
from pillarbox.kernel.postgres.database import Connection, TeamDb
from pillarbox.kernel.wire.paging import NO_PAGE, Page
from pillarbox.kernel.work.collectors import changed

MOST_ERRORS = 1000
"""Row errors that are listed of an import."""

JOB = "contacts.import"
"""One for each team that has imports to do: it does them one by one."""

INSERT = """
    INSERT INTO contact_imports
           (team_id, id, status, on_conflict, columns, segments, topics, blob, size, checkpoint, created_at)
    VALUES ($1, $2, 'queued', $3, $4::text::json, $5::text::json, $6::text::json, $7, $8, $9::text::json, $10)
"""

HOLD_COUNT = """
    SELECT pg_advisory_xact_lock(hashtextextended('contact imports of ' || team_id, 0))
      FROM (SELECT $1::uuid AS team_id) AS held
"""

COUNT_OPEN = """
    SELECT count(*) FROM contact_imports WHERE team_id = $1 AND status IN ('queued', 'in_progress')
"""

# The imports of a page, of the status `$5` or of any; or the one with the id `$6`. Files that wait to be
# mapped are none.
READ = """
    SELECT id, status, created_at, completed_at, created, updated, skipped, failed FROM (
        (SELECT *
           FROM contact_imports
          WHERE team_id = $1 AND id < $2 AND status <> 'uploaded' AND ($5::text IS NULL OR status = $5)
          ORDER BY id DESC LIMIT $4)
        UNION ALL
        (SELECT *
           FROM contact_imports
          WHERE team_id = $1 AND id > $3 AND status <> 'uploaded' AND ($5::text IS NULL OR status = $5)
          ORDER BY id LIMIT $4)
        UNION ALL
        (SELECT *
           FROM contact_imports
          WHERE team_id = $1 AND status <> 'uploaded' AND id = $6)
    ) AS page
"""

# The order is that of the file, so a cursor looks up to higher ids.
ERRORS = """
    SELECT id, row_number, email, reason FROM (
        (SELECT *
           FROM contact_import_errors
          WHERE team_id = $1 AND import_id = $5 AND id > $2 ORDER BY id LIMIT $4)
        UNION ALL
        (SELECT *
           FROM contact_import_errors
          WHERE team_id = $1 AND import_id = $5 AND id < $3 ORDER BY id DESC LIMIT $4)
    ) AS page
"""

SIZE = """
    SELECT size FROM contact_imports WHERE team_id = $1 AND id = $2
"""

POSITION = """
    SELECT (checkpoint->>'offset')::bigint FROM contact_imports WHERE team_id = $1 AND id = $2
"""

TAKE = """
    UPDATE contact_imports
       SET status = 'in_progress', started_at = coalesce(started_at, $2)
     WHERE team_id = $1
       AND id = (SELECT id FROM contact_imports
                  WHERE team_id = $1 AND status IN ('queued', 'in_progress')
                  ORDER BY id
                  LIMIT 1)
       AND status IN ('queued', 'in_progress')
    RETURNING id, on_conflict, columns::text, segments::text, topics::text, blob, size, checkpoint::text,
              created_at
"""

ADVANCE = """
    UPDATE contact_imports
       SET created = created + $3, updated = updated + $4, skipped = skipped + $5, failed = failed + $6,
           checkpoint = $7::text::json
     WHERE team_id = $1 AND id = $2 AND status = 'in_progress'
"""

END = """
    UPDATE contact_imports
       SET status = $3, reason = $4, completed_at = $5
     WHERE team_id = $1 AND id = $2 AND status IN ('queued', 'in_progress')
"""

RELEASED = """
    UPDATE contact_imports
       SET blob = NULL
     WHERE team_id = $1 AND id = $2 AND status IN ('completed', 'failed')
"""

ADD_ERRORS = """
    INSERT INTO contact_import_errors (team_id, import_id, id, row_number, email, reason)
    SELECT $1, $2, k.id, k.row_number, k.email, k.reason
      FROM unnest($3::uuid[], $4::bigint[], $5::text[], $6::text[]) AS k (id, row_number, email, reason)
    ON CONFLICT DO NOTHING
"""

LIVE_SEGMENTS = """
    SELECT id FROM segments WHERE team_id = $1 AND id = ANY ($2::uuid[]) AND conditions IS NULL ORDER BY id
"""

HOLD_TOPICS = """
    SELECT id FROM topics
     WHERE team_id = $1 AND id = ANY ($2::uuid[]) AND deleted_at IS NULL
     ORDER BY id
       FOR KEY SHARE
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportCounts:
    """An import as it is answered."""

    id: UUID
    status: str
    created_at: datetime
    completed_at: datetime | None
    created: int
    updated: int
    skipped: int
    failed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedError:
    """A row error as it is answered."""

    id: UUID
    row_number: int
    email: str | None
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimedImport:
    """An import that is being done. What is JSON here is read by `jobs`."""

    id: UUID
    on_conflict: str
    columns: str
    segments: str
    topics: str
    blob: str | None
    size: int
    checkpoint: str
    created_at: datetime


async def insert(
    db: TeamDb,
    import_id: UUID,
    on_conflict: str,
    *,
    columns: str,
    segments: str,
    topics: str,
    blob: str,
    size: int,
    checkpoint: str,
    now: datetime,
) -> None:
    await db.run(INSERT, import_id, on_conflict, columns, segments, topics, blob, size, checkpoint, now)


async def count_open(db: TeamDb) -> int:
    """Return how many imports of the team have not ended; none is added until the transaction ends."""
    await db.run(HOLD_COUNT)
    found: int = await db.value(COUNT_OPEN)
    return found


async def one(db: TeamDb, import_id: UUID) -> ImportCounts | None:
    return await db.one(ImportCounts, READ, *NO_PAGE, None, import_id)


async def page(db: TeamDb, page: Page, status: str | None) -> list[ImportCounts]:
    return await db.all(ImportCounts, READ, *page.args, status, None)


async def errors(db: TeamDb, page: Page, import_id: UUID) -> list[ListedError]:
    """Return a page of an import's errors in the order of the file."""
    after = None if page.before else page.after or UUID(int=0)
    return await db.all(ListedError, ERRORS, after, page.before, page.args[2], import_id)


async def size(db: TeamDb, import_id: UUID) -> int:
    """Return the octets of the file."""
    found: int = await db.value(SIZE, import_id)
    return found


async def position(db: TeamDb, import_id: UUID) -> int | None:
    """Return the octets of the file that are done."""
    found: int | None = await db.value(POSITION, import_id)
    return found


async def take(db: TeamDb, now: datetime) -> ClaimedImport | None:
    """Mark the team's oldest import that has not ended as in progress, and return it."""
    return await db.one(ClaimedImport, TAKE, now)


async def is_waiting(db: TeamDb) -> bool:
    """Return whether the team has an import that has not ended."""
    found: int = await db.value(COUNT_OPEN)
    return found > 0


async def advance(
    db: TeamDb, import_id: UUID, created: int, updated: int, skipped: int, failed: int, checkpoint: str
) -> bool:
    """Count what a batch did; False where the import is no longer in progress."""
    return await db.run(ADVANCE, import_id, created, updated, skipped, failed, checkpoint) == 1


async def end(db: TeamDb, import_id: UUID, status: str, reason: str | None, now: datetime) -> bool:
    return await db.run(END, import_id, status, reason, now) == 1


async def released(db: TeamDb, import_id: UUID) -> None:
    """Note that the file of an import that has ended is gone."""
    await db.run(RELEASED, import_id)


async def add_errors(
    db: TeamDb,
    import_id: UUID,
    ids: Sequence[UUID],
    rows: Sequence[int],
    emails: Sequence[str | None],
    reasons: Sequence[str],
) -> None:
    await db.run(ADD_ERRORS, import_id, ids, rows, emails, reasons)


async def hold_segments(db: TeamDb, segment_ids: Sequence[UUID]) -> list[UUID]:
    """Return those of these segments that exist and have no conditions; they stay until the transaction
    ends."""
    if not segment_ids:
        return []
    await segment_queries.lock_members(db)
    return list(await db.values(LIVE_SEGMENTS, segment_ids))


async def hold_topics(db: TeamDb, topic_ids: Sequence[UUID]) -> list[UUID]:
    """Return those of these topics that exist; they stay until the transaction ends."""
    return list(await db.values(HOLD_TOPICS, topic_ids)) if topic_ids else []


async def commit_without_waiting(conn: Connection) -> None:
    """Let the commit of this transaction not wait for the disk. What is lost when the database's machine dies
    is done again from the place that is committed with it."""
    await conn.execute("SELECT set_config('synchronous_commit', 'off', true)")


async def others_wait(db: TeamDb, now: datetime) -> bool:
    """Return whether imports of another team wait for a process."""
    found: bool = await db.value(
        """
        SELECT EXISTS (SELECT FROM jobs WHERE kind = $2 AND team_id <> $1 AND owner IS NULL AND due_at <= $3)
        """,
        JOB,
        now,
    )
    return found


@dataclass(frozen=True, slots=True)
class EndedImport:
    """An import that has ended and still names a file."""

    team_id: UUID
    id: UUID
    blob: str


async def ended_with_file(pool: asyncpg.Pool, limit: int) -> list[EndedImport]:
    """Return imports of all teams that have ended and still name a file."""
    rows = await pool.fetch(
        """
        SELECT team_id, id, blob
          FROM contact_imports
         WHERE blob IS NOT NULL AND status IN ('completed', 'failed')
         LIMIT $1
        """,
        limit,
    )
    return [EndedImport(**row) for row in rows]


async def remove_errors(pool: asyncpg.Pool, before: datetime, limit: int) -> None:
    """Delete the row errors of so many imports, of all teams, that ended before an instant."""
    await pool.execute(
        """
        DELETE FROM contact_import_errors e
         USING (SELECT team_id, id
                  FROM contact_imports
                 WHERE completed_at < $1 AND checkpoint IS NOT NULL
                 ORDER BY completed_at
                 LIMIT $2) AS old
         WHERE e.team_id = old.team_id AND e.import_id = old.id
        """,
        before,
        limit,
    )


async def remove_details(pool: asyncpg.Pool, before: datetime, limit: int) -> int:
    """Empty the details of such imports, once their errors are gone; return how many were emptied."""
    status = await pool.execute(
        """
        WITH old AS MATERIALIZED (
            SELECT team_id, id
              FROM contact_imports i
             WHERE completed_at < $1 AND checkpoint IS NOT NULL
               AND NOT EXISTS (SELECT FROM contact_import_errors e
                                WHERE e.team_id = i.team_id AND e.import_id = i.id)
             LIMIT $2
        )
        UPDATE contact_imports i
           SET checkpoint = NULL, columns = '{}', segments = '[]', topics = '{}', reason = NULL
          FROM old
         WHERE i.team_id = old.team_id AND i.id = old.id
        """,
        before,
        limit,
    )
    return changed(status)
