"""Blobs and the rows that name them, checked in both directions (DUR-14; architecture 6.8).

A row that names a blob which is not there is a gap. A blob that no row names is what a crash between
writing it and the commit leaves behind: it is counted, and once it is older than a day (far longer than
any commit takes) it may go.

This is not part of the snapshot: blobs have none. A row is read again when its blob is missing, for code that
deletes both deletes the row first; and blobs are listed before the rows are asked.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

import asyncpg

from pillarbox.emails.integrity import blob_queries as queries
from pillarbox.emails.integrity.blob_queries import TABLES, BlobReference, ReferencingTable
from pillarbox.emails.integrity.reconcile import Gap
from pillarbox.kernel.postgres.database import Connection, transaction
from pillarbox.kernel.storage import blob_removal
from pillarbox.kernel.storage.blobs import BlobFailed, BlobMissing, BlobStore

PAGE = 500
AT_ONCE = 16
OLD = timedelta(hours=24)
NIL = UUID(int=0)

FOLDERS = ("attachments", "captured", "received", "imports", "drafts", "images")
"""The folders of the store whose blobs are named by the tables below; all others are left alone."""


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
            references.unnamed = await queries.delete_named(conn)
            references.withheld = _doubt(references, collect)
            if references.unnamed and references.withheld is None:
                await _collect(conn, blobs, now - OLD, references)
        finally:
            await queries.drop_list(conn)
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
            references.unnamed = await queries.delete_named(conn)
            references.named = await queries.named(conn)
            if is_ours or references.unnamed <= references.named:
                await _collect(conn, blobs, before, references)
            else:
                references.withheld = "there are more of them than named ones"
        finally:
            await queries.drop_list(conn)
    return references


async def _check_table(
    pool: asyncpg.Pool, blobs: BlobStore, table: ReferencingTable, references: BlobReferences, limit: int
) -> None:
    """Check that every blob that a row of the table names is there, and has its size."""
    async for page in _pages(pool, table):
        answers = await _at_once([_trouble(blobs, row) for row in page])
        for row, trouble in zip(page, answers, strict=True):
            if trouble is None or await queries.blob_of(pool, table, row) != row.blob:
                references.named += trouble is None
            elif len(references.gaps) < limit:
                references.gaps.append(_gap(table, row, trouble))
            else:
                references.more = True


async def _pages(pool: asyncpg.Pool, table: ReferencingTable) -> AsyncIterator[Sequence[BlobReference]]:
    after = (NIL, NIL)
    while True:
        rows = await queries.page(pool, table, after, PAGE)
        if rows:
            yield rows
        if len(rows) < PAGE:
            return
        after = (rows[-1].team_id, rows[-1].id)


async def _at_once(checks: Sequence[Awaitable[str | None]]) -> list[str | None]:
    """Return the answers in order, a few checks at a time."""
    slots = asyncio.Semaphore(AT_ONCE)

    async def one(check: Awaitable[str | None]) -> str | None:
        async with slots:
            return await check

    return list(await asyncio.gather(*map(one, checks)))


async def _trouble(blobs: BlobStore, row: BlobReference) -> str | None:
    """Return the fault of a blob in words, such as `missing` or `of another size`; None for a sound one.

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


async def _short(blobs: BlobStore, row: BlobReference) -> str:
    try:
        async for _ in blobs.stream(row.blob, 0, 1):
            break
    except BlobMissing:
        return "missing"
    return "of another size"


def _gap(table: ReferencingTable, row: BlobReference, trouble: str) -> Gap:
    sentence = f"The blob {row.blob} of {table.name} {row.id} ({row.size} bytes) is {trouble}."
    ids = {"team_id": row.team_id, "id": row.id, "blob": row.blob, "size": row.size}
    return Gap(f"{table.name}_blob_{'missing' if trouble == 'missing' else 'differs'}", sentence, ids)


async def _list_blobs(conn: Connection, blobs: BlobStore, before: datetime) -> None:
    """Put the keys of the store in a table, so that they are compared with the rows at once."""
    await queries.begin_list(conn)
    for folder in FOLDERS:
        keys: list[str] = []
        async for key in blobs.list(folder, before):
            keys.append(key)
            if len(keys) == PAGE:
                await queries.add_to_list(conn, keys)
                keys = []
        await queries.add_to_list(conn, keys)
    await queries.finish_list(conn)


def _doubt(references: BlobReferences, collect: bool | None) -> str | None:
    """Return why unnamed blobs are kept, or None when they may go."""
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
        async for key in queries.listed(conn, PAGE):
            await blobs.delete(key)
            references.collected += 1
    await blobs.remove_partial(before)
