"""Sets aside the work that was open when a backup was made, in the database that was restored from it.

That work may have been done since: mail may have been delivered, events posted. So a restore puts all of it
aside, in the transaction that makes the database usable. It gets a due time that never comes, and
`restored_due_at` keeps its own. New work is done as always. The operator releases what is put aside, or drops
it. Released work that was already due counts as uncertain: its history says that it may be sent twice.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import NamedTuple

import asyncpg

from pillarbox.automations import restored as automations
from pillarbox.backup import restored_queries as queries
from pillarbox.backup.restored_queries import RestoredBackup, RestoredWork
from pillarbox.broadcasts import restored as broadcasts
from pillarbox.delivery.items import QUARANTINED
from pillarbox.delivery.queue.dropping import ends
from pillarbox.emails.rows import JOB_FETCH
from pillarbox.kernel.postgres.database import Connection, Source, transaction
from pillarbox.timeline.record import Timeline
from pillarbox.webhooks.health import JOB_DISABLED, JOB_FAILING

BATCH = 2000
DROPPED_AT_ONCE = 500
JOBS = (JOB_FETCH, JOB_DISABLED, JOB_FAILING, *broadcasts.JOBS)
"""Kinds of jobs that lead to mail; all others may run again."""

REASON = "It was open when the backup was made that was restored, so it may have been sent since."


class RestoredChoice(NamedTuple):
    """The kinds of work that a command releases or drops."""

    mail: bool = True
    webhooks: bool = True


async def put_aside(conn: Connection, backup: str, snapshot_at: datetime, now: datetime) -> None:
    """Put aside all that is open; in the transaction that makes the restored database usable."""
    await queries.hold_deliveries(conn, REASON)
    await queries.hold_webhook_deliveries(conn)
    await queries.hold_jobs(conn, JOBS)
    await broadcasts.pause(conn, REASON, now)
    await automations.hold(conn, QUARANTINED, REASON)
    await queries.free_jobs(conn)
    await queries.forget_processes(conn)
    await queries.mark(conn, backup, snapshot_at, now)


async def origin(source: Source) -> RestoredBackup | None:
    """Return the backup that this database is of, while work of it is put aside."""
    return await queries.origin(source)


async def summary(source: Source, now: datetime) -> list[RestoredWork]:
    """Return the work that is put aside, counted by kind."""
    return await queries.summary(source, now, JOB_FETCH, broadcasts.JOBS)


async def release(
    pool: asyncpg.Pool, choice: RestoredChoice, due_after: datetime | None, now: Callable[[], datetime]
) -> int:
    """Let go what is put aside, or what of it was to be done only after an instant; returns how much."""
    moved = 0
    if choice.mail:
        while n := await queries.release_deliveries(pool, now(), due_after, BATCH):
            moved += n
        async with transaction(pool) as conn:
            moved += await broadcasts.release(conn, REASON, due_after, now())
        moved += await automations.release(pool, QUARANTINED, due_after)
        if due_after is None:
            moved += await queries.release_other_jobs(pool, [JOB_FETCH, *broadcasts.JOBS])
            await queries.release_jobs(pool, JOB_FETCH)
    if choice.webhooks:
        while n := await queries.release_webhook_deliveries(pool, due_after, BATCH):
            moved += n
    await _unmark(pool)
    return moved


async def drop(
    pool: asyncpg.Pool, choice: RestoredChoice, timeline: Timeline, now: Callable[[], datetime]
) -> int:
    """Give up what is put aside: recipients and webhook deliveries end failed; returns how much it was."""
    dropped = 0
    while choice.mail:
        async with transaction(pool) as conn:
            gone = await queries.take_deliveries(conn, DROPPED_AT_ONCE)
            if not gone:
                dropped += await broadcasts.drop(conn)
                await queries.drop_jobs(conn)
                break
            await timeline.record(conn, await ends(conn, gone, now()))
        dropped += len(gone)
    if choice.mail:
        dropped += await automations.drop(pool, QUARANTINED, now())
    while choice.webhooks and (n := await queries.drop_webhook_deliveries(pool, BATCH)):
        dropped += n
    await _unmark(pool)
    return dropped


async def _unmark(pool: asyncpg.Pool) -> None:
    """End the database's state of being restored, once nothing is put aside any more."""
    if not await queries.is_open(pool):
        await queries.unmark(pool)
