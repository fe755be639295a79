"""Folding increments into rollups, and thinning the finest of them out (architecture 2.11).

`record` appends increments: small rows, one for each ten seconds, domain and broadcast of a batch. Folding
takes them away and adds them to the rollups of ten seconds, of the quarter hour, the hour and the UTC day, in
one statement; so whoever reads increments and rollups in one snapshot counts each event once, at any moment.

Rollups of ten seconds answer ranges that begin or end inside a quarter hour. They are there for every quarter
hour younger than `FINE_FOR`, and afterwards only where the quarter hour has so many events that reading its
timeline would be slow. A quarter hour has all of them or none.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from uuid import UUID

import asyncpg

from pillarbox.kernel.clock import Clock
from pillarbox.kernel.ids import first_id
from pillarbox.kernel.postgres.database import Connection, transaction
from pillarbox.kernel.work.collectors import changed, in_batches
from pillarbox.kernel.work.periodic import Periodic

BATCH = 10_000
FOLD_EVERY = timedelta(seconds=15)
THIN_EVERY = timedelta(hours=1)

LONGEST_MONTH = 31
"""Days that are kept whatever retention says: quotas count what was sent this month."""

FINE_FOR = timedelta(hours=48)
LOOK_BACK = timedelta(days=9)
"""How far behind `FINE_FOR` each run of thinning reads."""
BUSY = 20_000
"""Events that make a quarter hour busy …"""
BUSY_PER_ROW = 20
"""… when they are also so many for each of its ten-second rollups."""

FOLD_LOCK = 0x70696C6C_666F6C64

# Across teams: which of them have increments, by jumping from team to team in the primary key.
TEAMS = """
    WITH RECURSIVE found AS (
        (SELECT team_id FROM metric_increments ORDER BY team_id LIMIT 1)
        UNION ALL
        SELECT (SELECT i.team_id FROM metric_increments i
                 WHERE i.team_id > found.team_id ORDER BY i.team_id LIMIT 1)
          FROM found
         WHERE found.team_id IS NOT NULL
    )
    SELECT team_id FROM found WHERE team_id IS NOT NULL
"""

FOLD = """
    WITH taken AS (
        DELETE FROM metric_increments
         WHERE team_id = $1
           AND id IN (SELECT i.id FROM metric_increments i WHERE i.team_id = $1 ORDER BY i.id LIMIT $2)
        RETURNING start, coalesce(domain_id, $4) AS domain_id, domain_name,
                  coalesce(broadcast_id, $4) AS broadcast_id, received, sent, delivered,
                  delivery_delayed, failed, suppressed, bounced_transient, bounced_permanent,
                  bounced_undetermined, opened, clicked, unique_opened, unique_clicked, complained,
                  unsubscribed
    ), summed AS (
        SELECT l.level, date_bin(l.width, t.start, 'epoch'::timestamptz) AS start, t.domain_id,
               t.domain_name, t.broadcast_id, sum(t.received) AS received, sum(t.sent) AS sent,
               sum(t.delivered) AS delivered, sum(t.delivery_delayed) AS delivery_delayed,
               sum(t.failed) AS failed, sum(t.suppressed) AS suppressed,
               sum(t.bounced_transient) AS bounced_transient,
               sum(t.bounced_permanent) AS bounced_permanent,
               sum(t.bounced_undetermined) AS bounced_undetermined, sum(t.opened) AS opened,
               sum(t.clicked) AS clicked, sum(t.unique_opened) AS unique_opened,
               sum(t.unique_clicked) AS unique_clicked, sum(t.complained) AS complained,
               sum(t.unsubscribed) AS unsubscribed
          FROM taken t
         CROSS JOIN (VALUES (0::smallint, interval '10 seconds'), (1, '15 minutes'), (2, '1 hour'),
                            (3, '1 day')) AS l (level, width)
         WHERE l.level > 0 OR t.start >= $3
            OR EXISTS (SELECT FROM rollups f
                        WHERE f.team_id = $1 AND f.level = 0
                          AND f.start >= date_bin('15 minutes', t.start, 'epoch'::timestamptz)
                          AND f.start < date_bin('15 minutes', t.start, 'epoch'::timestamptz)
                                        + interval '15 minutes')
         GROUP BY 1, 2, 3, 4, 5
    ), added AS (
        INSERT INTO rollups AS r
               (team_id, level, start, domain_id, domain_name, broadcast_id, received, sent, delivered,
                delivery_delayed, failed, suppressed, bounced_transient, bounced_permanent,
                bounced_undetermined, opened, clicked, unique_opened, unique_clicked, complained,
                unsubscribed)
        SELECT $1, s.* FROM summed s ORDER BY s.level, s.start, s.domain_id, s.domain_name, s.broadcast_id
        ON CONFLICT (team_id, level, start, domain_id, domain_name, broadcast_id) DO UPDATE
           SET received = r.received + excluded.received, sent = r.sent + excluded.sent,
               delivered = r.delivered + excluded.delivered,
               delivery_delayed = r.delivery_delayed + excluded.delivery_delayed,
               failed = r.failed + excluded.failed, suppressed = r.suppressed + excluded.suppressed,
               bounced_transient = r.bounced_transient + excluded.bounced_transient,
               bounced_permanent = r.bounced_permanent + excluded.bounced_permanent,
               bounced_undetermined = r.bounced_undetermined + excluded.bounced_undetermined,
               opened = r.opened + excluded.opened, clicked = r.clicked + excluded.clicked,
               unique_opened = r.unique_opened + excluded.unique_opened,
               unique_clicked = r.unique_clicked + excluded.unique_clicked,
               complained = r.complained + excluded.complained,
               unsubscribed = r.unsubscribed + excluded.unsubscribed
    )
    SELECT count(*) FROM taken
"""

# Across teams: ten-second rollups of quiet quarter hours that are no longer recent.
THIN = """
    WITH fine AS (
        SELECT team_id, date_bin('15 minutes', start, 'epoch'::timestamptz) AS quarter, count(*) AS rows,
               sum(received + sent + delivered + delivery_delayed + failed + suppressed + bounced_transient
                   + bounced_permanent + bounced_undetermined + opened + clicked + complained
                   + unsubscribed) AS events
          FROM rollups
         WHERE level = 0 AND start >= $1 AND start < $2
         GROUP BY 1, 2
    ), quiet AS (
        SELECT team_id, quarter FROM fine WHERE events < $3 OR events < $4 * rows LIMIT $5
    )
    DELETE FROM rollups r
     USING quiet
     WHERE r.team_id = quiet.team_id AND r.level = 0
       AND r.start >= quiet.quarter AND r.start < quiet.quarter + interval '15 minutes'
"""

# Across teams: each has the installation's number of days or one of its own.
RETENTIONS = "SELECT id AS team_id, metrics_retention_days AS days FROM teams ORDER BY id"

FORGET = """
    WITH old AS MATERIALIZED (
        SELECT level, start, domain_id, domain_name, broadcast_id
          FROM rollups
         WHERE team_id = $1 AND level = ANY ('{0,1,2,3}'::smallint[]) AND start < $2 AND broadcast_id = $4
         LIMIT $3
    )
    DELETE FROM rollups r
     USING old
     WHERE r.team_id = $1 AND r.level = old.level AND r.start = old.start
       AND r.domain_id = old.domain_id AND r.domain_name = old.domain_name
       AND r.broadcast_id = old.broadcast_id
"""

# Before the first of them goes, so that nobody compares what is left with the history.
REMOVING = """
    INSERT INTO rollup_purges AS p (team_id, before, first_id) VALUES ($1, $2, $3)
    ON CONFLICT (team_id) DO UPDATE SET before = excluded.before, first_id = excluded.first_id
     WHERE p.before < excluded.before
"""

NOBODY = UUID(int=0)
"""Stands in a rollup's key for mail without a domain of ours, and for mail of no broadcast."""


async def fold(pool: asyncpg.Pool, now: datetime) -> int:
    """Add every increment to the rollups; returns how many there were."""
    total = 0
    for row in await pool.fetch(TEAMS):
        while True:
            async with transaction(pool) as conn:
                await lock(conn)
                taken = await fold_some(conn, row["team_id"], now)
            total += taken
            if taken < BATCH:
                break
    return total


async def fold_some(conn: Connection, team_id: UUID, now: datetime) -> int:
    """Add the oldest increments of a team to the rollups; the caller holds the lock."""
    taken: int = await conn.fetchval(FOLD, team_id, BATCH, _horizon(now), NOBODY)
    return taken


async def lock(conn: Connection) -> None:
    """Be the only one who writes rollups until the end of the transaction."""
    await conn.execute("SELECT pg_advisory_xact_lock($1)", FOLD_LOCK)


async def thin(pool: asyncpg.Pool, now: datetime, busy: int = BUSY) -> int:
    """Remove the ten-second rollups of quarter hours with fewer than `busy` events; returns how many."""
    horizon = _horizon(now)

    async def some() -> int:
        async with transaction(pool) as conn:
            await lock(conn)
            return changed(
                await conn.execute(THIN, horizon - LOOK_BACK, horizon, busy, min(busy, BUSY_PER_ROW), 200)
            )

    return await in_batches(some)


async def forget(pool: asyncpg.Pool, team_id: UUID, before: datetime) -> int:
    """Remove a team's rollups of days before `before`, but for those of broadcasts; returns how many."""

    async def some() -> int:
        async with transaction(pool) as conn:
            await lock(conn)
            return changed(await conn.execute(FORGET, team_id, before, BATCH, NOBODY))

    await pool.execute(REMOVING, team_id, before, first_id(before))
    return await in_batches(some)


async def remove_old(pool: asyncpg.Pool, now: datetime, retention_days: int) -> int:
    """Remove the rollups that are over their team's time; returns how many."""
    forgotten = 0
    for row in await pool.fetch(RETENTIONS):
        before = kept_since(now, retention_days if row["days"] is None else row["days"])
        if before is not None:
            forgotten += await forget(pool, row["team_id"], before)
    return forgotten


def kept_since(now: datetime, retention_days: int) -> datetime | None:
    """From when on rollups are kept for sure; None where that is for ever."""
    return oldest_day(now, max(retention_days, LONGEST_MONTH)) if retention_days else None


def _horizon(now: datetime) -> datetime:
    """The quarter hour from which on ten-second rollups are kept of all."""
    oldest = now - FINE_FOR
    return oldest.replace(minute=oldest.minute - oldest.minute % 15, second=0, microsecond=0)


def fold_periodic(pool: asyncpg.Pool, clock: Clock) -> Sequence[Periodic]:
    """The periodic job that folds increments."""

    async def folding() -> str:
        return f"{await fold(pool, clock.now())} increments folded"

    return [Periodic("metrics.fold", FOLD_EVERY, folding, quiet=True)]


def thin_periodic(pool: asyncpg.Pool, clock: Clock, retention_days: int) -> Sequence[Periodic]:
    """The periodic job that removes rollups."""

    async def thinning() -> str:
        now = clock.now()
        thinned = await thin(pool, now)
        forgotten = await remove_old(pool, now, retention_days)
        return f"{thinned} fine rollups thinned out, {forgotten} rollups forgotten"

    async def settings() -> object:
        rows = await pool.fetch(RETENTIONS)
        return retention_days, {row["team_id"]: row["days"] for row in rows if row["days"] is not None}

    return [Periodic("metrics.thin", THIN_EVERY, thinning, depends=settings)]


def oldest_day(now: datetime, retention_days: int) -> datetime:
    """The start of the oldest UTC day that is kept."""
    return now.replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=retention_days)
