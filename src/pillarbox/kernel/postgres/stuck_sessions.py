"""Ends sessions whose process has stopped in the middle of a statement (DUR-03).

PostgreSQL ends a session that is idle inside a transaction (`database.IDLE_LIMIT_MS`), but only between two
statements. A process that froze between preparing a statement and running it, in the middle of a COPY, or
with an answer half read, keeps its locks. Until it wakes up or dies, statements that skip locked rows never
see that work. So the processes look for such sessions and end them.

A session is stuck when at every look for so long it has waited for its process in the same statement, by a
clock that never jumps. A client that reads a large answer slowly looks the same as one that does not read. So
a session that waits to write counts only for the engine, whose answers are small.
"""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from pillarbox.kernel.clock import Clock
from pillarbox.kernel.observability.log import get
from pillarbox.kernel.postgres.database import ENGINE, IDLE_LIMIT_MS, Source

log = get("stuck_sessions")

# Across teams: sessions belong to the installation.
WAITING = """
    SELECT pid, query_start AS since
      FROM pg_stat_activity
     WHERE datname = current_database() AND usename = current_user AND pid <> pg_backend_pid()
       AND application_name LIKE 'pillarbox%' AND state = 'active'
       AND (wait_event = 'ClientRead' OR wait_event = 'ClientWrite' AND application_name = $1)
"""

# Only while it is still in the same statement.
END = """
    SELECT count(*) FILTER (WHERE pg_terminate_backend(a.pid))
      FROM unnest($1::integer[], $2::timestamptz[]) AS k (pid, since)
      JOIN pg_stat_activity a ON a.pid = k.pid AND a.query_start = k.since
     WHERE a.state = 'active' AND a.wait_event IN ('ClientRead', 'ClientWrite')
"""


class DatabaseSession(NamedTuple):
    """A session in one of its statements."""

    pid: int
    since: datetime


class StuckSessions:
    """Remembers since when sessions wait for their processes."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._waiting: dict[DatabaseSession, float] = {}

    async def look(self, conn: Source) -> int:
        """End the sessions that have been silent for too long; returns how many there were."""
        now = self._clock.boottime()
        found = [DatabaseSession(*row) for row in await conn.fetch(WAITING, ENGINE)]
        self._waiting = {session: self._waiting.get(session, now) for session in found}
        stuck = [session for session, since in self._waiting.items() if now - since >= IDLE_LIMIT_MS / 1000]
        if not stuck:
            return 0
        ended: int = await conn.fetchval(END, *zip(*stuck, strict=True))
        log.warning("stuck_sessions.ended", sessions=ended)
        return ended
