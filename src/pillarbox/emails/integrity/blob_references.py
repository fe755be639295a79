"""Blobs and the rows that name them, checked in both directions (DUR-14; architecture 6.8).

A row that names a blob which is not there is a gap. A blob that no row names is what a crash between
writing it and the commit leaves behind: it is counted, and once it is older than a day (far longer than
any commit takes) it may go.

This is not part of the snapshot: blobs have none. A row is read again when its blob is missing, for
whoever deletes both deletes the row first; and blobs are listed before the rows are asked.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID

import asyncpg

from pillarbox.emails.integrity.reconcile import TIMEOUT, Gap
from pillarbox.kernel.postgres.database import Connection, transaction
from pillarbox.kernel.storage import blob_removal
from pillarbox.kernel.storage.blobs import BlobFailed, BlobMissing, BlobStore

PAGE = 500
AT_ONCE = 16
OLD = timedelta(hours=24)
NIL = UUID(int=0)

FOLDERS = ("attachments", "captured", "received", "imports", "drafts")
"""The folders of the store whose blobs are named by the tables below; all others are left alone."""


class ReferencingTable(NamedTuple):
    """A table that names blobs. `page` gives those rows in key order, `again` one of them."""

    name: str
    page: str
    again: str


# Across teams: the operator's check of the whole store.
TABLES = (
    ReferencingTable(
        "attachments",
        """
        SELECT team_id, id, blob, size FROM attachments
         WHERE blob IS NOT NULL AND (team_id, id) > ($1, $2)
         ORDER BY team_id, id
         LIMIT $3
        """,
        "SELECT blob FROM attachments WHERE team_id = $1 AND id = $2",
    ),
    ReferencingTable(
        "captured",
        """
        SELECT team_id, id, blob, size FROM captured
         WHERE blob IS NOT NULL AND (team_id, id) > ($1, $2)
         ORDER BY team_id, id
         LIMIT $3
        """,
        "SELECT blob FROM captured WHERE team_id = $1 AND id = $2",
    ),
    ReferencingTable(
        "received_sources",
        """
        SELECT team_id, id, blob, size FROM received_sources
         WHERE blob IS NOT NULL AND (team_id, id) > ($1, $2)
         ORDER BY team_id, id
         LIMIT $3
        """,
        "SELECT blob FROM received_sources WHERE team_id = $1 AND id = $2",
    ),
    ReferencingTable(
        "contact_imports",
        """
        SELECT team_id, id, blob, size FROM contact_imports
         WHERE blob IS NOT NULL AND status IN ('queued', 'in_progress') AND (team_id, id) > ($1, $2)
         ORDER BY team_id, id
         LIMIT $3
        """,
        """
        SELECT blob FROM contact_imports
         WHERE team_id = $1 AND id = $2 AND status IN ('queued', 'in_progress')
        """,
    ),
    ReferencingTable(
        "inbox_draft_attachments",
        """
        SELECT team_id, id, blob, size FROM inbox_draft_attachments
         WHERE blob IS NOT NULL AND (team_id, id) > ($1, $2)
         ORDER BY team_id, id
         LIMIT $3
        """,
        "SELECT blob FROM inbox_draft_attachments WHERE team_id = $1 AND id = $2",
    ),
)

LISTED = "CREATE TEMPORARY TABLE listed_blobs (key text NOT NULL)"
ANALYZE = "ANALYZE listed_blobs"
DROP = "DROP TABLE IF EXISTS listed_blobs"

# Across teams. A blob under the id of an attachment that is still being fetched is about to be named.
DELETE_NAMED = """
    DELETE FROM listed_blobs l
     USING (SELECT blob AS key FROM attachments WHERE blob IS NOT NULL
            UNION ALL
            SELECT blob FROM captured WHERE blob IS NOT NULL
            UNION ALL
            SELECT blob FROM received_sources WHERE blob IS NOT NULL
            UNION ALL
            SELECT blob FROM contact_imports WHERE blob IS NOT NULL
            UNION ALL
            SELECT blob FROM inbox_draft_attachments WHERE blob IS NOT NULL
            UNION ALL
            SELECT 'attachments/' || id::text FROM attachments WHERE size IS NULL) AS named
     WHERE l.key = named.key
"""
COUNT = "SELECT count(*) FROM listed_blobs"
UNNAMED = "SELECT key FROM listed_blobs"

# Across teams: how many rows name a blob.
NAMED = """
    SELECT (SELECT count(*) FROM attachments WHERE blob IS NOT NULL)
         + (SELECT count(*) FROM captured WHERE blob IS NOT NULL)
         + (SELECT count(*) FROM received_sources WHERE blob IS NOT NULL)
         + (SELECT count(*) FROM contact_imports WHERE blob IS NOT NULL)
         + (SELECT count(*) FROM inbox_draft_attachments WHERE blob IS NOT NULL)
"""


@dataclass(slots=True)
class BlobReferences:
    """`named` blobs are where their rows say, `unnamed` are old and without a row, of which `collected`
    are gone now. `withheld` says why the others were not."""

    named: int = 0
    unnamed: int = 0
    collected: int = 0
    withheld: str | None = None
    gaps: list[Gap] = field(default_factory=list)
    more: bool = False


class _NamedBlob(NamedTuple):
    team_id: UUID
    id: UUID
    blob: str
    size: int | None


async def take(
    pool: asyncpg.Pool, blobs: BlobStore, now: datetime, limit: int, *, collect: bool | None
) -> BlobReferences:
    """Count blobs and compare them with their rows.

    Unnamed ones are deleted when `collect` is true, and kept when it is false. When it is None they are
    deleted only if the store is clearly this database's own: every named blob is there, and there are
    at least as many of those as of the unnamed. Raises BlobFailed when the store cannot be read.
    """
    references = BlobReferences()
    for table in TABLES:
        await _check_table(pool, blobs, table, references, limit)
    async with pool.acquire() as conn:
        await _list_blobs(conn, blobs, now - OLD)
        try:
            await conn.execute(DELETE_NAMED, timeout=TIMEOUT)
            references.unnamed = await conn.fetchval(COUNT)
            references.withheld = _doubt(references, collect)
            if references.unnamed and references.withheld is None:
                await _collect(conn, blobs, now - OLD, references)
        finally:
            await conn.execute(DROP)
    return references


async def collect_unnamed(
    pool: asyncpg.Pool, blobs: BlobStore, before: datetime, *, is_ours: bool
) -> BlobReferences:
    """Delete blobs that were written before that time and that no row names; for the background.

    The named ones are counted but not checked. A store that other installations may share (`is_ours` is
    False) is left alone while it holds more unnamed blobs than named ones.
    """
    references = BlobReferences()
    async with pool.acquire() as conn:
        await _list_blobs(conn, blobs, before)
        try:
            await conn.execute(DELETE_NAMED, timeout=TIMEOUT)
            references.unnamed = await conn.fetchval(COUNT)
            references.named = await conn.fetchval(NAMED, timeout=TIMEOUT)
            if is_ours or references.unnamed <= references.named:
                await _collect(conn, blobs, before, references)
            else:
                references.withheld = "there are more of them than named ones"
        finally:
            await conn.execute(DROP)
    return references


async def _check_table(
    pool: asyncpg.Pool, blobs: BlobStore, table: ReferencingTable, references: BlobReferences, limit: int
) -> None:
    """Every blob that a row of the table names is there, and has its size."""
    async for page in _pages(pool, table):
        answers = await _at_once([_trouble(blobs, row) for row in page])
        for row, trouble in zip(page, answers, strict=True):
            if trouble is None or await pool.fetchval(table.again, row.team_id, row.id) != row.blob:
                references.named += trouble is None
            elif len(references.gaps) < limit:
                references.gaps.append(_gap(table, row, trouble))
            else:
                references.more = True


async def _pages(pool: asyncpg.Pool, table: ReferencingTable) -> AsyncIterator[Sequence[_NamedBlob]]:
    after = (NIL, NIL)
    while True:
        rows = [_NamedBlob(**row) for row in await pool.fetch(table.page, *after, PAGE, timeout=TIMEOUT)]
        if rows:
            yield rows
        if len(rows) < PAGE:
            return
        after = (rows[-1].team_id, rows[-1].id)


async def _at_once(checks: Sequence[Awaitable[str | None]]) -> list[str | None]:
    """The answers in order, a few checks at a time."""
    slots = asyncio.Semaphore(AT_ONCE)

    async def one(check: Awaitable[str | None]) -> str | None:
        async with slots:
            return await check

    return list(await asyncio.gather(*map(one, checks)))


async def _trouble(blobs: BlobStore, row: _NamedBlob) -> str | None:
    """What is wrong with a blob: `missing`, `of another size`, or None.

    The last byte must be there and none behind it: two bytes are asked for, whatever the size.
    """
    start = max(0, (row.size or 0) - 1)
    wanted = 1 if row.size else 0
    try:
        found = sum([len(chunk) async for chunk in blobs.stream(row.blob, start, start + 2)])
    except BlobMissing:
        return "missing"
    except BlobFailed:
        # A store may refuse a range behind the end; if the start can be read, it is only too short.
        return await _short(blobs, row)
    except ValueError:
        return "not a name that a blob can have"
    return None if found == wanted else "of another size"


async def _short(blobs: BlobStore, row: _NamedBlob) -> str:
    try:
        async for _ in blobs.stream(row.blob, 0, 1):
            break
    except BlobMissing:
        return "missing"
    return "of another size"


def _gap(table: ReferencingTable, row: _NamedBlob, trouble: str) -> Gap:
    sentence = f"The blob {row.blob} of {table.name} {row.id} ({row.size} bytes) is {trouble}."
    ids = {"team_id": row.team_id, "id": row.id, "blob": row.blob, "size": row.size}
    return Gap(f"{table.name}_blob_{'missing' if trouble == 'missing' else 'differs'}", sentence, ids)


async def _list_blobs(conn: Connection, blobs: BlobStore, before: datetime) -> None:
    """The keys of the store in a table, so that they are compared with the rows at once."""
    await conn.execute(DROP)
    await conn.execute(LISTED)
    for folder in FOLDERS:
        keys: list[tuple[str]] = []
        async for key in blobs.list(folder, before):
            keys.append((key,))
            if len(keys) == PAGE:
                await conn.copy_records_to_table("listed_blobs", records=keys)
                keys = []
        await conn.copy_records_to_table("listed_blobs", records=keys)
    await conn.execute(ANALYZE)


def _doubt(references: BlobReferences, collect: bool | None) -> str | None:
    """Why unnamed blobs are kept, or None when they may go."""
    if collect is False:
        return "asked to keep them"
    if collect is None and (references.gaps or references.unnamed > references.named):
        return "this may be another installation's store; --collect deletes them all the same"
    return None


async def _collect(conn: Connection, blobs: BlobStore, before: datetime, references: BlobReferences) -> None:
    # Asked behind the look at the rows: a backup that begins now has no row of these in its snapshot.
    if not await blob_removal.is_allowed(conn):
        references.withheld = "a backup is being made"
        return
    async with transaction(conn):
        async for row in conn.cursor(UNNAMED, prefetch=PAGE, timeout=TIMEOUT):
            await blobs.delete(row["key"])
            references.collected += 1
    await blobs.remove_partial(before)
