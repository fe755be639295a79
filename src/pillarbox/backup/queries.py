"""SQL of making a backup and of loading one. Its statements are about the installation, across teams."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from typing import NamedTuple

from pillarbox.kernel.postgres.database import Connection
from pillarbox.kernel.postgres.migrations import MigrationRow, has_table

PREFETCH = 2000


class Snapshot(NamedTuple):
    """An open transaction that sees one instant; `id` is its name for other sessions, `server` the number of
    the server's version: 180006 is 18.6."""

    id: str
    at: datetime
    server: int


class NamedBlob(NamedTuple):
    """A blob that rows name; `size` is None where no row says it."""

    key: str
    size: int | None


async def snapshot(conn: Connection) -> Snapshot:
    """Let other sessions see what this transaction sees."""
    [row] = await conn.fetch(
        """
        SELECT pg_export_snapshot() AS id, clock_timestamp() AS at,
               current_setting('server_version_num')::integer AS server
        """
    )
    return Snapshot(*row)


async def counts(conn: Connection) -> dict[str, int]:
    """Return how many rows each table has."""
    tables = await conn.fetch(
        """
        SELECT c.relname AS name, quote_ident(n.nspname) || '.' || quote_ident(c.relname) AS place
          FROM pg_class c
          JOIN pg_namespace n ON n.oid = c.relnamespace
         WHERE c.relkind = 'r' AND n.nspname = current_schema()
         ORDER BY c.relname
        """
    )
    found = {}
    for name, place in tables:
        # The name comes from the catalog and is quoted by it.
        found[name] = int(await conn.fetchval(f"SELECT count(*) FROM {place}"))  # noqa: S608
    return found


async def open_work(conn: Connection) -> dict[str, int]:
    """Return how much waits to be done; what is not released is scheduled, or waits for a file."""
    [row] = await conn.fetch(
        """
        SELECT (SELECT count(*) FROM deliveries WHERE released) AS deliveries,
               (SELECT count(*) FROM deliveries WHERE NOT released) AS scheduled,
               (SELECT count(*) FROM webhook_deliveries WHERE due_at < 'infinity') AS webhook_deliveries
        """
    )
    return dict(row)


# In the order of bytes, so that lists of keys can be merged.
BLOBS = """
    SELECT key, max(size) AS size
      FROM (SELECT blob AS key, size FROM attachments WHERE blob IS NOT NULL
             UNION ALL
            SELECT blob, size FROM captured WHERE blob IS NOT NULL
             UNION ALL
            SELECT blob, size FROM received_sources WHERE blob IS NOT NULL
             UNION ALL
            SELECT blob, size FROM contact_imports
             WHERE blob IS NOT NULL AND status IN ('queued', 'in_progress')
             UNION ALL
            SELECT blob, size FROM inbox_draft_attachments WHERE blob IS NOT NULL) AS named
     GROUP BY key
     ORDER BY key COLLATE "C"
"""

# For schemas without drafts of inboxes.
BLOBS_BEFORE_DRAFTS = """
    SELECT key, max(size) AS size
      FROM (SELECT blob AS key, size FROM attachments WHERE blob IS NOT NULL
             UNION ALL
            SELECT blob, size FROM captured WHERE blob IS NOT NULL
             UNION ALL
            SELECT blob, size FROM received_sources WHERE blob IS NOT NULL
             UNION ALL
            SELECT blob, size FROM contact_imports
             WHERE blob IS NOT NULL AND status IN ('queued', 'in_progress')) AS named
     GROUP BY key
     ORDER BY key COLLATE "C"
"""

# For schemas without files of imports.
BLOBS_BEFORE_IMPORTS = """
    SELECT key, max(size) AS size
      FROM (SELECT blob AS key, size FROM attachments WHERE blob IS NOT NULL
             UNION ALL
            SELECT blob, size FROM captured WHERE blob IS NOT NULL
             UNION ALL
            SELECT blob, size FROM received_sources WHERE blob IS NOT NULL) AS named
     GROUP BY key
     ORDER BY key COLLATE "C"
"""


async def blobs(conn: Connection) -> AsyncIterator[NamedBlob]:
    """Return the blobs that rows name, by their keys. The schema may be that of an older release, which is
    backed up before an upgrade."""
    if await has_table(conn, "inbox_draft_attachments"):
        listing = BLOBS
    else:
        listing = BLOBS_BEFORE_DRAFTS if await _have_imports_files(conn) else BLOBS_BEFORE_IMPORTS
    async for row in conn.cursor(listing, prefetch=PREFETCH):
        yield NamedBlob(*row)


async def _have_imports_files(conn: Connection) -> bool:
    """Tell whether imports have a file."""
    found: bool = await conn.fetchval(
        """
    SELECT EXISTS (SELECT FROM pg_attribute
                    WHERE attrelid = to_regclass('contact_imports') AND attname = 'blob' AND NOT attisdropped)
        """
    )
    return found


async def add_backup(
    conn: Connection, name: str, target: str, snapshot_at: datetime, finished_at: datetime, octets: int
) -> None:
    """Note that a backup was made."""
    await conn.execute(
        """
        INSERT INTO backups (name, target, snapshot_at, finished_at, octets) VALUES ($1, $2, $3, $4, $5)
        """,
        name,
        target,
        snapshot_at,
        finished_at,
        octets,
    )


async def keep_newest_backups(conn: Connection, limit: int) -> None:
    """Forget all backups but the newest `limit`."""
    await conn.execute(
        """
        DELETE FROM backups WHERE name NOT IN (SELECT name FROM backups ORDER BY snapshot_at DESC LIMIT $1)
        """,
        limit,
    )


async def is_occupied(conn: Connection) -> bool:
    """Tell whether the database has any table, view or sequence."""
    found: bool = await conn.fetchval(
        """
    SELECT EXISTS (SELECT FROM pg_class c
                     JOIN pg_namespace n ON n.oid = c.relnamespace
                    WHERE c.relkind IN ('r', 'p', 'v', 'm', 'S', 'f') AND n.nspname <> 'information_schema'
                      AND n.nspname NOT LIKE 'pg\\_%')
        """
    )
    return found


async def sealing_keys(conn: Connection) -> set[str]:
    """Return the ids of the keys of the ring that values are sealed with. A sealed value names its key
    (`kernel.security.secrets`)."""
    rows = await conn.fetch(
        """
        SELECT DISTINCT convert_from(substring(sealed FROM 3 FOR get_byte(sealed, 1)), 'SQL_ASCII') AS key_id
          FROM (SELECT private_key AS sealed FROM dkim_keys
                 UNION ALL
                SELECT unnest(secrets) FROM webhooks
                 UNION ALL
                SELECT sealed FROM link_keys) AS every
         WHERE octet_length(sealed) > 2
        """
    )
    return {row["key_id"] for row in rows}


async def add_versions(conn: Connection, versions: Sequence[MigrationRow]) -> None:
    """Write which migrations a restored schema has."""
    await conn.execute("ALTER TABLE schema_migrations ADD COLUMN IF NOT EXISTS compatible_since integer")
    await conn.executemany(
        """
        INSERT INTO schema_migrations (version, name, checksum, applied_at, compatible_since)
        VALUES ($1, $2, $3, $4, $5)
        """,
        versions,
    )


async def analyze(conn: Connection) -> None:
    """Gather the statistics of all tables."""
    await conn.execute("ANALYZE")
