"""Facts of the installation as a whole: its database and its newest backup."""

from __future__ import annotations

from pillarbox.kernel.observability import queries
from pillarbox.kernel.observability.queries import DatabaseFacts, NotedBackup
from pillarbox.kernel.postgres.database import Source


async def database_facts(source: Source) -> DatabaseFacts:
    """Return the version of the database server, that of the schema, and how much the database takes."""
    return await queries.database_facts(source)


async def newest_backup(source: Source) -> NotedBackup | None:
    """Return the newest backup that `pillarbox backup` has noted; None where there is none."""
    return await queries.newest_backup(source)
