"""SQL of processes and of the clocks of their machines. Both belong to the installation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from pillarbox.kernel.postgres.database import Source


async def record_process(
    source: Source,
    process: UUID,
    host: str,
    pid: int,
    pid_start: int,
    roles: str,
    now: datetime,
    route: str | None,
) -> None:
    """Insert the row of a process, or update when it was last seen and by which route it delivers."""
    await source.execute(
        """
        INSERT INTO processes (id, host, pid, pid_start, roles, started_at, seen_at, knows_copies, route)
        VALUES ($1, $2, $3, $4, $5, $6, $6, true, $7)
        ON CONFLICT (id) DO UPDATE
           SET seen_at = excluded.seen_at, route = coalesce(excluded.route, processes.route)
        """,
        process,
        host,
        pid,
        pid_start,
        roles,
        now,
        route,
    )


class RegisteredProcess(NamedTuple):
    """A process in the register: `pid_start` tells it from a later one with the same number."""

    id: UUID
    pid: int
    pid_start: int


async def registered_at(source: Source, host: str) -> list[RegisteredProcess]:
    """Return the processes of a host that are in the register."""
    rows = await source.fetch("SELECT id, pid, pid_start FROM processes WHERE host = $1", host)
    return [RegisteredProcess(**row) for row in rows]


@dataclass(frozen=True, slots=True)
class SeenProcess:
    """A process with the instant at which it last said that it runs."""

    id: UUID
    host: str
    pid: int
    roles: str
    started_at: datetime
    seen_at: datetime
    route: str | None


async def seen_since(source: Source, since: datetime, limit: int) -> list[SeenProcess]:
    """Return the processes that were seen after an instant, the latest first."""
    rows = await source.fetch(
        """
        SELECT id, host, pid, roles, started_at, seen_at, route
          FROM processes
         WHERE seen_at > $1
         ORDER BY seen_at DESC, id
         LIMIT $2
        """,
        since,
        limit,
    )
    return [SeenProcess(**row) for row in rows]


async def store_jumps(
    source: Source, ids: Sequence[UUID], instants: Sequence[datetime], seconds: Sequence[float], older: int
) -> None:
    """Store jumps of a clock, and of the older ones remove all but the newest `older`."""
    await source.execute(
        """
        WITH kept AS (
            INSERT INTO clock_jumps (id, at, seconds)
            SELECT * FROM unnest($1::uuid[], $2::timestamptz[], $3::double precision[])
        )
        DELETE FROM clock_jumps WHERE id IN (SELECT id FROM clock_jumps ORDER BY kept_at DESC OFFSET $4)
        """,
        ids,
        instants,
        seconds,
        older,
    )


# Across teams: by one look into the index of each team's emails, into that of kept answers, and at the few
# jumps and processes.
async def is_dated_ahead(source: Source, instant: datetime, email_id: UUID) -> bool:
    """Tell whether a clock ahead has dated anything after this instant, or an email after this id."""
    found: bool = await source.fetchval(
        """
    SELECT EXISTS (SELECT FROM clock_jumps WHERE at > $1)
        OR EXISTS (SELECT FROM processes WHERE seen_at > $1)
        OR EXISTS (SELECT FROM idempotency_keys WHERE created_at > $1)
        OR EXISTS (
           SELECT FROM teams t
            CROSS JOIN LATERAL (SELECT FROM emails e WHERE e.team_id = t.id AND e.id > $2 LIMIT 1) AS newest)
        """,
        instant,
        email_id,
    )
    return found
