"""What was open when a backup was made, in a database that was restored from it.

It may have been done since: mail may have been delivered, events posted. So a restore puts all of it aside,
in the transaction that makes the database usable: it is due at an instant that never comes, and
`restored_due_at` says when it was due. New work is done as always. The operator releases what is put aside,
or drops it. Released work that was due already counts as uncertain: its history says that it may go out
twice.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import NamedTuple

import asyncpg

from pillarbox.automations import restored as automations
from pillarbox.broadcasts import restored as broadcasts
from pillarbox.delivery.items import QUARANTINED, UNTIL_FETCHED
from pillarbox.delivery.queue.dropping import ends
from pillarbox.emails.rows import JOB_FETCH
from pillarbox.kernel.postgres.database import Connection, Source, transaction
from pillarbox.kernel.work.collectors import changed
from pillarbox.timeline.record import Timeline
from pillarbox.webhooks.health import JOB_DISABLED, JOB_FAILING

BATCH = 2000
DROPPED_AT_ONCE = 500
JOBS = (JOB_FETCH, JOB_DISABLED, JOB_FAILING, *broadcasts.JOBS)
"""Kinds of jobs that lead to mail; all others may run again."""

REASON = "It was open when the backup was made that was restored, so it may have been sent since."

# All statements here are across teams: a restore is the installation's.

# What was quarantined stays so. What waits for a file is due when its job, which is put aside too, is done.
HOLD_DELIVERIES = """
    UPDATE deliveries
       SET restored_due_at = due_at,
           due_at = CASE WHEN due_at = $1 THEN due_at ELSE $2 END,
           owner = NULL, leased_until = NULL, reason = $3
     WHERE due_at <> $2
"""

HOLD_WEBHOOK_DELIVERIES = """
    UPDATE webhook_deliveries
       SET restored_due_at = due_at, due_at = $1, owner = NULL, leased_until = NULL
     WHERE due_at < $1
"""

HOLD_JOBS = """
    UPDATE jobs
       SET restored_due_at = due_at, due_at = $1, owner = NULL, leased_until = NULL
     WHERE kind = ANY ($2::text[])
"""

# The processes of the installation that the backup is of have no leases here.
FREE_JOBS = "UPDATE jobs SET owner = NULL, leased_until = NULL WHERE owner IS NOT NULL"
FORGET_PROCESSES = "DELETE FROM processes"

MARK = """
    INSERT INTO restored (backup, snapshot_at, restored_at) VALUES ($1, $2, $3)
    ON CONFLICT (id) DO UPDATE
       SET backup = excluded.backup, snapshot_at = excluded.snapshot_at, restored_at = excluded.restored_at
"""

ORIGIN = "SELECT backup, snapshot_at, restored_at FROM restored"

SUMMARY = """
    SELECT kind, count(*) AS items, min(created_at) AS oldest, max(created_at) AS newest,
           count(*) FILTER (WHERE due > $1) AS later
      FROM (SELECT CASE WHEN restored_due_at = $2 THEN 'fetching'
                        WHEN released THEN 'mail'
                        ELSE 'scheduled' END AS kind,
                   created_at, restored_due_at AS due
              FROM deliveries
             WHERE restored_due_at IS NOT NULL AND due_at IN ($2, $3)
             UNION ALL
            SELECT 'webhooks', at, restored_due_at
              FROM webhook_deliveries
             WHERE restored_due_at IS NOT NULL AND due_at = $3
             UNION ALL
            SELECT 'automations', r.created_at, w.restored_due_at
              FROM automation_work w
              JOIN automation_runs r ON r.team_id = w.team_id AND r.id = w.run_id
             WHERE w.restored_due_at IS NOT NULL AND w.due_at = $3
             UNION ALL
            SELECT CASE WHEN kind = ANY ($5::text[]) THEN 'broadcasts' ELSE 'notices' END, created_at,
                   restored_due_at
              FROM jobs
             WHERE restored_due_at IS NOT NULL AND due_at = $3 AND kind <> $4) AS open
     GROUP BY kind
     ORDER BY kind
"""

RELEASE_DELIVERIES = """
    WITH chosen AS MATERIALIZED (
        SELECT team_id, email_id, grp
          FROM deliveries
         WHERE restored_due_at IS NOT NULL AND due_at IN ($1, $2)
           AND ($4::timestamptz IS NULL OR restored_due_at > $4 AND restored_due_at < $1)
         ORDER BY team_id, email_id, grp
         LIMIT $5
           FOR UPDATE SKIP LOCKED
    )
    UPDATE deliveries d
       SET due_at = d.restored_due_at, restored_due_at = NULL, reason = NULL,
           uncertain = d.uncertain + (d.restored_due_at <= $3)::integer
      FROM chosen
     WHERE d.team_id = chosen.team_id AND d.email_id = chosen.email_id AND d.grp = chosen.grp
"""

RELEASE_WEBHOOK_DELIVERIES = """
    WITH chosen AS MATERIALIZED (
        SELECT team_id, webhook_id, event_id, replay
          FROM webhook_deliveries
         WHERE restored_due_at IS NOT NULL AND due_at = $1
           AND ($2::timestamptz IS NULL OR restored_due_at > $2)
         ORDER BY team_id, webhook_id, event_id, replay
         LIMIT $3
           FOR UPDATE SKIP LOCKED
    )
    UPDATE webhook_deliveries d
       SET due_at = d.restored_due_at, restored_due_at = NULL
      FROM chosen
     WHERE d.team_id = chosen.team_id AND d.webhook_id = chosen.webhook_id AND d.event_id = chosen.event_id
       AND d.replay = chosen.replay
"""

RELEASE_FETCHING = """
    UPDATE jobs SET due_at = restored_due_at, restored_due_at = NULL
     WHERE restored_due_at IS NOT NULL AND owner IS NULL AND kind = $1
"""

RELEASE_NOTICES = """
    UPDATE jobs SET due_at = restored_due_at, restored_due_at = NULL
     WHERE restored_due_at IS NOT NULL AND owner IS NULL AND kind <> ALL ($1::text[])
"""

TAKE = """
    WITH chosen AS MATERIALIZED (
        SELECT team_id, email_id, grp
          FROM deliveries
         WHERE restored_due_at IS NOT NULL AND due_at IN ($1, $2)
         ORDER BY team_id, email_id, grp
         LIMIT $3
           FOR UPDATE SKIP LOCKED
    )
    DELETE FROM deliveries d
     USING chosen
     WHERE d.team_id = chosen.team_id AND d.email_id = chosen.email_id AND d.grp = chosen.grp
    RETURNING d.team_id, d.email_id, d.grp, d.uncertain > 0 AS uncertain
"""

# An attempt by hand that is lost needs no outcome.
DROP_WEBHOOK_DELIVERIES = """
    WITH chosen AS MATERIALIZED (
        SELECT team_id, webhook_id, event_id, replay
          FROM webhook_deliveries
         WHERE restored_due_at IS NOT NULL AND due_at = $1
         ORDER BY team_id, webhook_id, event_id, replay
         LIMIT $2
           FOR UPDATE SKIP LOCKED
    ), gone AS (
        DELETE FROM webhook_deliveries d
         USING chosen
         WHERE d.team_id = chosen.team_id AND d.webhook_id = chosen.webhook_id
           AND d.event_id = chosen.event_id AND d.replay = chosen.replay
        RETURNING d.team_id, d.webhook_id, d.event_id, d.replay, d.kind, d.at, d.subject_id, d.position,
                  d.detail
    ), ended AS (
        INSERT INTO webhook_outcomes (team_id, webhook_id, event_id, kind, at, status, subject_id, position,
                                      detail)
        SELECT team_id, webhook_id, event_id, kind, at, 'failed', subject_id, position, detail
          FROM gone
         WHERE replay = '00000000-0000-0000-0000-000000000000'
        ON CONFLICT (team_id, webhook_id, event_id) DO NOTHING
    )
    SELECT count(*) FROM gone
"""

DROP_JOBS = "DELETE FROM jobs WHERE restored_due_at IS NOT NULL AND owner IS NULL"

IS_OPEN = """
    SELECT EXISTS (SELECT FROM deliveries WHERE restored_due_at IS NOT NULL AND due_at IN ($1, $2))
        OR EXISTS (SELECT FROM webhook_deliveries WHERE restored_due_at IS NOT NULL AND due_at = $2)
        OR EXISTS (SELECT FROM jobs WHERE restored_due_at IS NOT NULL AND due_at = $2)
        OR EXISTS (SELECT FROM automation_work WHERE restored_due_at IS NOT NULL AND due_at = $2)
"""

UNMARK = "DELETE FROM restored"


class RestoredBackup(NamedTuple):
    """Which backup the database was restored from, as long as some of its work is put aside."""

    backup: str
    snapshot_at: datetime
    restored_at: datetime


class RestoredWork(NamedTuple):
    """Work of one kind that is put aside: how much, how old, and how much of it is due only later."""

    kind: str
    items: int
    oldest: datetime
    newest: datetime
    later: int


class RestoredChoice(NamedTuple):
    """What is released or dropped."""

    mail: bool = True
    webhooks: bool = True


async def put_aside(conn: Connection, backup: str, snapshot_at: datetime, now: datetime) -> None:
    """Put aside all that is open; in the transaction that makes the restored database usable."""
    await conn.execute(HOLD_DELIVERIES, UNTIL_FETCHED, QUARANTINED, REASON)
    await conn.execute(HOLD_WEBHOOK_DELIVERIES, QUARANTINED)
    await conn.execute(HOLD_JOBS, QUARANTINED, JOBS)
    await broadcasts.pause(conn, REASON, now)
    await automations.hold(conn, QUARANTINED, REASON)
    await conn.execute(FREE_JOBS)
    await conn.execute(FORGET_PROCESSES)
    await conn.execute(MARK, backup, snapshot_at, now)


async def origin(source: Source) -> RestoredBackup | None:
    """The backup that this database is of, while work of it is put aside."""
    row = await source.fetchrow(ORIGIN)
    return None if row is None else RestoredBackup(**row)


async def summary(source: Source, now: datetime) -> list[RestoredWork]:
    """What is put aside, by kind."""
    args = (now, UNTIL_FETCHED, QUARANTINED, JOB_FETCH, broadcasts.JOBS)
    return [RestoredWork(**row) for row in await source.fetch(SUMMARY, *args)]


async def release(
    pool: asyncpg.Pool, choice: RestoredChoice, due_after: datetime | None, now: Callable[[], datetime]
) -> int:
    """Let go what is put aside, or what of it was to be done only after an instant; returns how much."""
    moved = 0
    if choice.mail:
        while n := changed(
            await pool.execute(RELEASE_DELIVERIES, UNTIL_FETCHED, QUARANTINED, now(), due_after, BATCH)
        ):
            moved += n
        async with transaction(pool) as conn:
            moved += await broadcasts.release(conn, REASON, due_after, now())
        moved += await automations.release(pool, QUARANTINED, due_after)
        if due_after is None:
            moved += changed(await pool.execute(RELEASE_NOTICES, [JOB_FETCH, *broadcasts.JOBS]))
            await pool.execute(RELEASE_FETCHING, JOB_FETCH)
    if choice.webhooks:
        while n := changed(await pool.execute(RELEASE_WEBHOOK_DELIVERIES, QUARANTINED, due_after, BATCH)):
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
            gone = await conn.fetch(TAKE, UNTIL_FETCHED, QUARANTINED, DROPPED_AT_ONCE)
            if not gone:
                dropped += await broadcasts.drop(conn)
                await conn.execute(DROP_JOBS)
                break
            await timeline.record(conn, await ends(conn, gone, now()))
        dropped += len(gone)
    if choice.mail:
        dropped += await automations.drop(pool, QUARANTINED, now())
    while choice.webhooks and (n := await pool.fetchval(DROP_WEBHOOK_DELIVERIES, QUARANTINED, BATCH)):
        dropped += n
    await _unmark(pool)
    return dropped


async def _unmark(pool: asyncpg.Pool) -> None:
    """The database is one like any other when nothing is put aside any more."""
    if not await pool.fetchval(IS_OPEN, UNTIL_FETCHED, QUARANTINED):
        await pool.execute(UNMARK)
