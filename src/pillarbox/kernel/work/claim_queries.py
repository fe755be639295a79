"""SQL of running jobs: which are due, claiming them, and what becomes of a claim."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from uuid import UUID

import asyncpg

from pillarbox.kernel.postgres.database import Connection, Source
from pillarbox.kernel.work.fair_turns import DueJob
from pillarbox.kernel.work.lease_table import LeaseTable
from pillarbox.kernel.work.lone_attempts import DUE_AFTER_LOSS

LEASE = timedelta(seconds=60)
RENEW_EVERY = 15.0
GIVEN_UP_GAP = timedelta(days=1)

# What was begun $6 times is given up: at once where its handler ends it ($7), else it is tried once in $8.
JOBS = LeaseTable(
    "jobs",
    {"team_id": "uuid", "id": "uuid"},
    LEASE,
    RENEW_EVERY,
    on_return="tries = w.attempt",
    on_loss=f"""due_at = CASE WHEN w.begun < $6 THEN {DUE_AFTER_LOSS}
                              WHEN w.kind = ANY ($7::text[]) THEN w.due_at
                              ELSE $4::timestamptz + $8::interval END""",
    tells_of_lost="w.kind, w.begun >= $6 AS given_up",
)

# Across teams: free work that is due. No key changes: who holds a job only against its end (FOR KEY SHARE, as
# senders of events do all the time) keeps nobody from claiming it, nor from the statements below.
CLAIM = """
    WITH due AS MATERIALIZED (
        SELECT team_id, id
          FROM jobs
         WHERE kind = ANY ($5::text[]) AND owner IS NULL AND due_at <= $3
         ORDER BY due_at
         LIMIT $4
           FOR NO KEY UPDATE SKIP LOCKED
    )
    UPDATE jobs j
       SET owner = $1, leased_until = $2, attempt = j.attempt + 1,
           begun = CASE WHEN j.attempt > j.tries THEN least(j.begun + 1, 100) ELSE 0 END
      FROM due
     WHERE j.team_id = due.team_id AND j.id = due.id
    RETURNING j.team_id, j.id, j.kind, j.subject_id, j.attempt, j.tries, j.created_at, j.begun
"""

# The same from the other end of the queue.
CLAIM_LATEST = """
    WITH due AS MATERIALIZED (
        SELECT team_id, id
          FROM jobs
         WHERE kind = ANY ($5::text[]) AND owner IS NULL AND due_at <= $3
         ORDER BY due_at DESC
         LIMIT $4
           FOR NO KEY UPDATE SKIP LOCKED
    )
    UPDATE jobs j
       SET owner = $1, leased_until = $2, attempt = j.attempt + 1,
           begun = CASE WHEN j.attempt > j.tries THEN least(j.begun + 1, 100) ELSE 0 END
      FROM due
     WHERE j.team_id = due.team_id AND j.id = due.id
    RETURNING j.team_id, j.id, j.kind, j.subject_id, j.attempt, j.tries, j.created_at, j.begun
"""

# Across teams: what is due, of all kinds.
DUE_KINDS = """
    SELECT kind
      FROM jobs
     WHERE owner IS NULL AND due_at <= $1
     ORDER BY due_at
     LIMIT $2
"""

# Across teams: whether a job is due, and whether some process runs one (`kernel.work.queue_poll`).
IS_DUE = "SELECT EXISTS (SELECT FROM jobs WHERE owner IS NULL AND due_at <= $1)"
IS_HELD = "SELECT EXISTS (SELECT FROM jobs WHERE owner IS NOT NULL)"

FINISH = """
    DELETE FROM jobs WHERE team_id = $1 AND id = $2 AND attempt = $3
"""

POSTPONE = """
    UPDATE jobs
       SET owner = NULL, leased_until = NULL, due_at = $4, tries = attempt, reason = $5
     WHERE team_id = $1 AND id = $2 AND attempt = $3
"""

# Across teams: what is to be alone, while something else is. It was not begun.
LEAVE = """
    UPDATE jobs j
       SET owner = NULL, leased_until = NULL, tries = j.tries + 1, begun = j.begun - 1, due_at = $4
      FROM unnest($1::uuid[], $2::uuid[]) AS k (team_id, id)
     WHERE j.team_id = k.team_id AND j.id = k.id AND j.owner = $3
"""

# Across teams: what is due of one kind, of each team at most $3, the first of each site before the second of
# any. The teams are found by one step of the index each, however much one of them has waiting.
CANDIDATES = """
    WITH RECURSIVE teams AS (
        (SELECT team_id FROM jobs WHERE kind = $1 AND owner IS NULL ORDER BY team_id LIMIT 1)
        UNION ALL
        SELECT (SELECT j.team_id
                  FROM jobs j
                 WHERE j.kind = $1 AND j.owner IS NULL AND j.team_id > t.team_id
                 ORDER BY j.team_id
                 LIMIT 1)
          FROM teams t
         WHERE t.team_id IS NOT NULL
    )
    SELECT t.team_id, w.id, w.site
      FROM teams t
     CROSS JOIN LATERAL (
           SELECT id, site, due_at, row_number() OVER (PARTITION BY site ORDER BY due_at) AS turn
             FROM jobs
            WHERE team_id = t.team_id AND kind = $1 AND owner IS NULL AND due_at <= $2
            ORDER BY turn, due_at
            LIMIT $3
           ) AS w
     WHERE t.team_id IS NOT NULL
     ORDER BY w.turn, w.due_at
     LIMIT 500
"""

# Across teams: these, as far as nobody has taken them meanwhile.
CLAIM_THESE = """
    WITH due AS MATERIALIZED (
        SELECT j.team_id, j.id
          FROM unnest($3::uuid[], $4::uuid[]) AS k (team_id, id)
          JOIN jobs j ON j.team_id = k.team_id AND j.id = k.id
         WHERE j.owner IS NULL AND j.due_at <= $5
           FOR NO KEY UPDATE OF j SKIP LOCKED
    )
    UPDATE jobs j
       SET owner = $1, leased_until = $2, attempt = j.attempt + 1,
           begun = CASE WHEN j.attempt > j.tries THEN least(j.begun + 1, 100) ELSE 0 END
      FROM due
     WHERE j.team_id = due.team_id AND j.id = due.id
    RETURNING j.team_id, j.id, j.kind, j.subject_id, j.attempt, j.tries, j.created_at, j.site,
              j.begun
"""


async def due_kinds(source: Source, now: datetime, limit: int) -> list[str]:
    """Return the kinds of the jobs that are due, of so many jobs."""
    return [row[0] for row in await source.fetch(DUE_KINDS, now, limit)]


async def claim(
    source: Source, owner: UUID, now: datetime, limit: int, kinds: Collection[str], *, latest: bool
) -> Sequence[asyncpg.Record]:
    """Lease due jobs of these kinds: those that have waited longest, or with `latest` shortest."""
    statement = CLAIM_LATEST if latest else CLAIM
    rows: Sequence[asyncpg.Record] = await source.fetch(statement, owner, now + LEASE, now, limit, kinds)
    return rows


async def candidates(source: Source, kind: str, now: datetime, limit: int) -> list[DueJob]:
    """Return due jobs of a kind whose teams take turns, of each team up to a limit."""
    return [DueJob(*row) for row in await source.fetch(CANDIDATES, kind, now, limit)]


async def claim_these(
    source: Source, owner: UUID, now: datetime, jobs: Sequence[DueJob]
) -> Sequence[asyncpg.Record]:
    """Lease these jobs, as far as nobody has taken them meanwhile."""
    keys = [job.team_id for job in jobs], [job.id for job in jobs]
    rows: Sequence[asyncpg.Record] = await source.fetch(CLAIM_THESE, owner, now + LEASE, *keys, now)
    return rows


async def leave(
    source: Source, team_ids: Sequence[UUID], ids: Sequence[UUID], owner: UUID, due_at: datetime
) -> None:
    """Free jobs that were not begun, for later."""
    await source.execute(LEAVE, team_ids, ids, owner, due_at)


async def finish(conn: Connection, team_id: UUID, job_id: UUID, attempt: int) -> bool:
    """Remove a job that is over; False where it is not this claim's any more."""
    status: str = await conn.execute(FINISH, team_id, job_id, attempt)
    return status.endswith(" 1")


async def postpone(
    conn: Connection, team_id: UUID, job_id: UUID, attempt: int, due_at: datetime, reason: str
) -> bool:
    """Free a job until `due_at`; False where it is not this claim's any more."""
    status: str = await conn.execute(POSTPONE, team_id, job_id, attempt, due_at, reason)
    return status.endswith(" 1")
