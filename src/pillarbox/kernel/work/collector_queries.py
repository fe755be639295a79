"""SQL of what is removed from the kernel's own tables, or dated anew (`collectors`)."""

from __future__ import annotations

from datetime import datetime

from pillarbox.kernel.postgres.database import Source

# Across teams: answers that are given again no more.
EXPIRED_KEYS = """
    WITH old AS MATERIALIZED (
        SELECT team_id, scope, key
          FROM idempotency_keys
         WHERE created_at < $1
         ORDER BY created_at
         LIMIT $2
           FOR UPDATE SKIP LOCKED
    )
    DELETE FROM idempotency_keys i
     USING old
     WHERE i.team_id = old.team_id AND i.scope = old.scope AND i.key = old.key
"""

# Across teams: answers that a clock ahead of time has dated; they would be given again for too long.
MISDATED_KEYS = """
    UPDATE idempotency_keys SET created_at = $1 WHERE created_at > $1
"""

# Across teams: processes belong to the installation.
DEAD_PROCESSES = """
    DELETE FROM processes WHERE seen_at < $1
"""


async def remove_expired_keys(source: Source, before: datetime, limit: int) -> str:
    """Remove up to so many answers from before an instant; returns the status of the statement."""
    status: str = await source.execute(EXPIRED_KEYS, before, limit)
    return status


async def date_keys(source: Source, now: datetime) -> str:
    """Set answers from the future to `now`; return the status of the statement."""
    status: str = await source.execute(MISDATED_KEYS, now)
    return status


async def remove_processes(source: Source, before: datetime) -> str:
    """Remove processes that were last seen before an instant; returns the status of the statement."""
    status: str = await source.execute(DEAD_PROCESSES, before)
    return status
