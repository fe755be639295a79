"""One instant of the database, for pg_dump and for us: its tables are counted, its blobs listed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from io import BufferedRandom
from typing import NamedTuple

import asyncpg

from pillarbox.kernel.postgres.database import Connection

PREFETCH = 2000

OPEN = """
    SELECT pg_export_snapshot() AS id, clock_timestamp() AS at,
           current_setting('server_version_num')::integer AS server
"""

TABLES = """
    SELECT c.relname AS name, quote_ident(n.nspname) || '.' || quote_ident(c.relname) AS place
      FROM pg_class c
      JOIN pg_namespace n ON n.oid = c.relnamespace
     WHERE c.relkind = 'r' AND n.nspname = current_schema()
     ORDER BY c.relname
"""

# Across teams: the backup is the installation's. In the order of bytes, so that lists of keys can be merged.
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

# A database of an older release is backed up before an upgrade, with the program of this one.
HAS_DRAFTS = """
    SELECT to_regclass('inbox_draft_attachments') IS NOT NULL
"""

# Across teams, as above, for schemas without drafts of inboxes.
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

HAS_IMPORTS = """
    SELECT EXISTS (SELECT FROM pg_attribute
                    WHERE attrelid = to_regclass('contact_imports') AND attname = 'blob' AND NOT attisdropped)
"""

# Across teams, as above, for schemas without files of imports.
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

# Across teams, as above. What is not released yet is scheduled, or waits for a file.
OPEN_WORK = """
    SELECT (SELECT count(*) FROM deliveries WHERE released) AS deliveries,
           (SELECT count(*) FROM deliveries WHERE NOT released) AS scheduled,
           (SELECT count(*) FROM webhook_deliveries WHERE due_at < 'infinity') AS webhook_deliveries
"""


class Snapshot(NamedTuple):
    """An open transaction that sees one instant; `id` is its name for other sessions."""

    conn: Connection
    id: str
    at: datetime
    server: int


@asynccontextmanager
async def opened(conn: asyncpg.Connection) -> AsyncIterator[Snapshot]:
    """The database as it is now, for as long as the block runs."""
    async with conn.transaction(isolation="repeatable_read", readonly=True):
        row = await conn.fetchrow(OPEN)
        assert row is not None
        yield Snapshot(conn, row["id"], row["at"], row["server"] // 10000)


async def counts(conn: Connection) -> dict[str, int]:
    """How many rows each table has."""
    found = {}
    for table in await conn.fetch(TABLES):
        # The name comes from the catalog and is quoted by it.
        found[table["name"]] = int(await conn.fetchval(f"SELECT count(*) FROM {table['place']}"))  # noqa: S608
    return found


async def open_work(conn: Connection) -> dict[str, int]:
    """How much waits to be done."""
    row = await conn.fetchrow(OPEN_WORK)
    assert row is not None
    return dict(row)


async def _blobs_of(conn: Connection) -> str:
    """The statement that lists what this schema names."""
    if await conn.fetchval(HAS_DRAFTS):
        return BLOBS
    return BLOBS_BEFORE_DRAFTS if await conn.fetchval(HAS_IMPORTS) else BLOBS_BEFORE_IMPORTS


async def list_blobs(conn: Connection, file: BufferedRandom) -> None:
    """Write the blobs that the snapshot names to a file, a line each, sorted; then go to its start."""
    async for row in conn.cursor(await _blobs_of(conn), prefetch=PREFETCH):
        size = "" if row["size"] is None else row["size"]
        file.write(f"{row['key']}\t{size}\n".encode())
    file.seek(0)
