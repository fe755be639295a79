"""SQL of what a restore puts aside. Its statements are about the installation, across teams.

What is put aside is due at an instant that never comes; `restored_due_at` says when it was due.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

import asyncpg

from pillarbox.delivery.items import QUARANTINED, UNTIL_FETCHED
from pillarbox.kernel.postgres.database import Connection, Source
from pillarbox.kernel.work.collectors import changed


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


async def hold_deliveries(conn: Connection, reason: str) -> None:
    """Put all deliveries aside. What was quarantined stays so. What waits for a file is due when its job,
    which is put aside too, is done."""
    await conn.execute(
        """
        UPDATE deliveries
           SET restored_due_at = due_at,
               due_at = CASE WHEN due_at = $1 THEN due_at ELSE $2 END,
               owner = NULL, leased_until = NULL, reason = $3
         WHERE due_at <> $2
        """,
        UNTIL_FETCHED,
        QUARANTINED,
        reason,
    )


async def hold_webhook_deliveries(conn: Connection) -> None:
    """Put all webhook deliveries aside."""
    await conn.execute(
        """
        UPDATE webhook_deliveries
           SET restored_due_at = due_at, due_at = $1, owner = NULL, leased_until = NULL
         WHERE due_at < $1
        """,
        QUARANTINED,
    )


async def hold_jobs(conn: Connection, kinds: Sequence[str]) -> None:
    """Put the jobs of these kinds aside."""
    await conn.execute(
        """
        UPDATE jobs
           SET restored_due_at = due_at, due_at = $1, owner = NULL, leased_until = NULL
         WHERE kind = ANY ($2::text[])
        """,
        QUARANTINED,
        kinds,
    )


async def free_jobs(conn: Connection) -> None:
    """End all leases of jobs: the processes of the installation that the backup is of have none here."""
    await conn.execute("UPDATE jobs SET owner = NULL, leased_until = NULL WHERE owner IS NOT NULL")


async def forget_processes(conn: Connection) -> None:
    """Remove the processes of the installation that the backup is of."""
    await conn.execute("DELETE FROM processes")


async def mark(conn: Connection, backup: str, snapshot_at: datetime, now: datetime) -> None:
    """Note which backup the database was restored from."""
    await conn.execute(
        """
    INSERT INTO restored (backup, snapshot_at, restored_at) VALUES ($1, $2, $3)
    ON CONFLICT (id) DO UPDATE
       SET backup = excluded.backup, snapshot_at = excluded.snapshot_at, restored_at = excluded.restored_at
        """,
        backup,
        snapshot_at,
        now,
    )


async def origin(source: Source) -> RestoredBackup | None:
    """Return the backup that this database is of, while work of it is put aside."""
    row = await source.fetchrow("SELECT backup, snapshot_at, restored_at FROM restored")
    return None if row is None else RestoredBackup(**row)


async def summary(
    source: Source, now: datetime, fetching: str, broadcasts: Sequence[str]
) -> list[RestoredWork]:
    """Return what is put aside, by kind; jobs of the kind `fetching` belong to their mail."""
    rows = await source.fetch(
        """
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
        """,
        now,
        UNTIL_FETCHED,
        QUARANTINED,
        fetching,
        broadcasts,
    )
    return [RestoredWork(**row) for row in rows]


async def release_deliveries(source: Source, now: datetime, due_after: datetime | None, limit: int) -> int:
    """Let go up to `limit` deliveries; return how many. Those that were due by now count as uncertain."""
    return changed(
        await source.execute(
            """
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
            """,
            UNTIL_FETCHED,
            QUARANTINED,
            now,
            due_after,
            limit,
        )
    )


async def release_webhook_deliveries(source: Source, due_after: datetime | None, limit: int) -> int:
    """Let go up to `limit` webhook deliveries; return how many."""
    return changed(
        await source.execute(
            """
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
            """,
            QUARANTINED,
            due_after,
            limit,
        )
    )


async def release_jobs(source: Source, kind: str) -> None:
    """Let go all jobs of a kind."""
    await source.execute(
        """
        UPDATE jobs SET due_at = restored_due_at, restored_due_at = NULL
         WHERE restored_due_at IS NOT NULL AND owner IS NULL AND kind = $1
        """,
        kind,
    )


async def release_other_jobs(source: Source, kinds: Sequence[str]) -> int:
    """Let go all jobs but those of these kinds; return how many."""
    return changed(
        await source.execute(
            """
            UPDATE jobs SET due_at = restored_due_at, restored_due_at = NULL
             WHERE restored_due_at IS NOT NULL AND owner IS NULL AND kind <> ALL ($1::text[])
            """,
            kinds,
        )
    )


async def take_deliveries(conn: Connection, limit: int) -> list[asyncpg.Record]:
    """Remove up to `limit` deliveries; return each with `team_id`, `email_id`, `grp` and `uncertain`."""
    rows: list[asyncpg.Record] = await conn.fetch(
        """
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
        """,
        UNTIL_FETCHED,
        QUARANTINED,
        limit,
    )
    return rows


async def drop_webhook_deliveries(source: Source, limit: int) -> int:
    """End up to `limit` webhook deliveries as failed; return how many."""
    # An attempt by hand that is lost needs no outcome.
    dropped: int = await source.fetchval(
        """
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
        """,
        QUARANTINED,
        limit,
    )
    return dropped


async def drop_jobs(conn: Connection) -> None:
    """Remove all jobs."""
    await conn.execute("DELETE FROM jobs WHERE restored_due_at IS NOT NULL AND owner IS NULL")


async def is_open(source: Source) -> bool:
    """Tell whether anything is put aside."""
    found: bool = await source.fetchval(
        """
        SELECT EXISTS (SELECT FROM deliveries WHERE restored_due_at IS NOT NULL AND due_at IN ($1, $2))
            OR EXISTS (SELECT FROM webhook_deliveries WHERE restored_due_at IS NOT NULL AND due_at = $2)
            OR EXISTS (SELECT FROM jobs WHERE restored_due_at IS NOT NULL AND due_at = $2)
            OR EXISTS (SELECT FROM automation_work WHERE restored_due_at IS NOT NULL AND due_at = $2)
        """,
        UNTIL_FETCHED,
        QUARANTINED,
    )
    return found


async def unmark(source: Source) -> None:
    """Forget which backup the database was restored from."""
    await source.execute("DELETE FROM restored")
