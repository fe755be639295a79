"""SQL of the gauges over the whole installation."""

from __future__ import annotations

from datetime import datetime

from pillarbox.kernel.postgres.database import Source


async def last_backup(source: Source, *, timeout: float | None = None) -> datetime | None:
    """Return the instant of the newest backup that `pillarbox backup` has noted."""
    last: datetime | None = await source.fetchval("SELECT max(snapshot_at) FROM backups", timeout=timeout)
    return last
