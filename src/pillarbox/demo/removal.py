"""Removing the demo's team: every row of it in every table, its account, and its blobs."""

from __future__ import annotations

from typing import Final, NamedTuple
from uuid import UUID

import asyncpg

from pillarbox.demo import team_queries as queries
from pillarbox.demo.making import MARK
from pillarbox.kernel.postgres.database import transaction
from pillarbox.kernel.storage import blob_removal
from pillarbox.kernel.storage.blobs import BlobFailed, BlobStore
from pillarbox.teams import bootstrap
from pillarbox.teams.bootstrap import TeamStatus

MOST_PASSES: Final = 5
"""A server that runs may write a row of the team while the others are removed; the next pass finds it."""


class DemoRemoval(NamedTuple):
    """How much was removed. `left_blobs` could not be deleted now; they are orphans, which are collected."""

    rows: int
    blobs: int
    left_blobs: int


async def remove_demo(pool: asyncpg.Pool, blob_url: str) -> DemoRemoval | None:
    """Remove the demo; None where there is none. It may be called again after an abort."""
    team = await queries.marked_team(pool, MARK)
    if team is None:
        return None
    await bootstrap.set_status(pool, team.id, TeamStatus.DISABLED)
    blobs = await queries.blobs(pool, team.id)
    rows = 0
    for _ in range(MOST_PASSES):
        removed = await _remove_rows(pool, team.id)
        rows += removed
        if not removed:
            break
    async with transaction(pool) as conn:
        await queries.remove_team(conn, team.id)
        await queries.remove_people(conn, await queries.marked_people(conn, MARK))
    deleted = await _delete(pool, blob_url, blobs) if blobs else 0
    return DemoRemoval(rows, deleted, len(blobs) - deleted)


async def _remove_rows(pool: asyncpg.Pool, team_id: UUID) -> int:
    """Remove the rows that there are at the moment; returns how many."""
    rows = 0
    async with transaction(pool) as conn:
        names = [table.name for table in reversed(await queries.tables(conn))]
        for name in (*(name for name in names if name != "audit_entries"), *queries.MADE_BY_TRIGGERS):
            rows += await queries.remove(conn, name, team_id)
    async with transaction(pool) as conn:
        await queries.let_audit_entries_go(conn)
        rows += await queries.remove(conn, "audit_entries", team_id)
        await queries.keep_audit_entries(conn)
    return rows


async def _delete(pool: asyncpg.Pool, blob_url: str, keys: list[str]) -> int:
    """Delete blobs; returns how many. While a backup is made, none is deleted."""
    if not await blob_removal.is_allowed(pool):
        return 0
    store, deleted = BlobStore.open(blob_url), 0
    try:
        for key in keys:
            await store.delete(key)
            deleted += 1
    except BlobFailed:
        return deleted
    finally:
        await store.close()
    return deleted
