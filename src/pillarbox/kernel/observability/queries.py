"""SQL of the gauges over the whole installation."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from pillarbox.kernel.postgres.database import Source


async def last_backup(source: Source, *, timeout: float | None = None) -> datetime | None:
    """Return the instant of the newest backup that `pillarbox backup` has noted."""
    last: datetime | None = await source.fetchval("SELECT max(snapshot_at) FROM backups", timeout=timeout)
    return last


@dataclass(frozen=True, slots=True)
class DatabaseFacts:
    """The versions of the server and of the schema, and the octets of the database."""

    version: str
    schema_version: int
    octets: int


@dataclass(frozen=True, slots=True)
class NotedBackup:
    """A backup, with the instant of which it is."""

    name: str
    snapshot_at: datetime
    finished_at: datetime
    octets: int


async def database_facts(source: Source) -> DatabaseFacts:
    """Return what the server says of itself and of the database."""
    [row] = await source.fetch(
        """
        SELECT current_setting('server_version') AS version,
               (SELECT max(version) FROM schema_migrations) AS schema_version,
               pg_database_size(current_database()) AS octets
        """
    )
    return DatabaseFacts(**row)


async def newest_backup(source: Source) -> NotedBackup | None:
    """Return the newest backup."""
    row = await source.fetchrow(
        """
        SELECT name, snapshot_at, finished_at, octets FROM backups ORDER BY snapshot_at DESC, name LIMIT 1
        """
    )
    return None if row is None else NotedBackup(**row)
