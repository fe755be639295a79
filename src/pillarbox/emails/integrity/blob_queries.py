"""SQL of blobs and of the rows that name them, over all teams, for the operator's check of the whole store.

The keys of the store are listed in a temporary table, so that they are compared with the rows at once.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import NamedTuple
from uuid import UUID

import asyncpg

from pillarbox.emails.integrity.queries import TIMEOUT
from pillarbox.kernel.postgres.database import Connection


class ReferencingTable(NamedTuple):
    """A table that names blobs. `page` gives those rows in key order, `again` one of them."""

    name: str
    page: str
    again: str


# Across teams: the operator's check of the whole store.
TABLES = (
    ReferencingTable(
        "attachments",
        """
        SELECT team_id, id, blob, size FROM attachments
         WHERE blob IS NOT NULL AND (team_id, id) > ($1, $2)
         ORDER BY team_id, id
         LIMIT $3
        """,
        "SELECT blob FROM attachments WHERE team_id = $1 AND id = $2",
    ),
    ReferencingTable(
        "captured",
        """
        SELECT team_id, id, blob, size FROM captured
         WHERE blob IS NOT NULL AND (team_id, id) > ($1, $2)
         ORDER BY team_id, id
         LIMIT $3
        """,
        "SELECT blob FROM captured WHERE team_id = $1 AND id = $2",
    ),
    ReferencingTable(
        "received_sources",
        """
        SELECT team_id, id, blob, size FROM received_sources
         WHERE blob IS NOT NULL AND (team_id, id) > ($1, $2)
         ORDER BY team_id, id
         LIMIT $3
        """,
        "SELECT blob FROM received_sources WHERE team_id = $1 AND id = $2",
    ),
    ReferencingTable(
        "contact_imports",
        """
        SELECT team_id, id, blob, size FROM contact_imports
         WHERE blob IS NOT NULL AND status IN ('queued', 'in_progress') AND (team_id, id) > ($1, $2)
         ORDER BY team_id, id
         LIMIT $3
        """,
        """
        SELECT blob FROM contact_imports
         WHERE team_id = $1 AND id = $2 AND status IN ('queued', 'in_progress')
        """,
    ),
    ReferencingTable(
        "images",
        """
        SELECT team_id, id, blob, size FROM images
         WHERE (team_id, id) > ($1, $2)
         ORDER BY team_id, id
         LIMIT $3
        """,
        "SELECT blob FROM images WHERE team_id = $1 AND id = $2",
    ),
    ReferencingTable(
        "inbox_draft_attachments",
        """
        SELECT team_id, id, blob, size FROM inbox_draft_attachments
         WHERE blob IS NOT NULL AND (team_id, id) > ($1, $2)
         ORDER BY team_id, id
         LIMIT $3
        """,
        "SELECT blob FROM inbox_draft_attachments WHERE team_id = $1 AND id = $2",
    ),
)

# Across teams. A blob under the id of an attachment that is still being fetched is about to be named.
DELETE_NAMED = """
    DELETE FROM listed_blobs l
     USING (SELECT blob AS key FROM attachments WHERE blob IS NOT NULL
            UNION ALL
            SELECT blob FROM captured WHERE blob IS NOT NULL
            UNION ALL
            SELECT blob FROM received_sources WHERE blob IS NOT NULL
            UNION ALL
            SELECT blob FROM contact_imports WHERE blob IS NOT NULL
            UNION ALL
            SELECT blob FROM inbox_draft_attachments WHERE blob IS NOT NULL
            UNION ALL
            SELECT blob FROM images
            UNION ALL
            SELECT 'attachments/' || id::text FROM attachments WHERE size IS NULL) AS named
     WHERE l.key = named.key
"""

# Across teams: how many rows name a blob.
NAMED = """
    SELECT (SELECT count(*) FROM attachments WHERE blob IS NOT NULL)
         + (SELECT count(*) FROM captured WHERE blob IS NOT NULL)
         + (SELECT count(*) FROM received_sources WHERE blob IS NOT NULL)
         + (SELECT count(*) FROM contact_imports WHERE blob IS NOT NULL)
         + (SELECT count(*) FROM inbox_draft_attachments WHERE blob IS NOT NULL)
         + (SELECT count(*) FROM images)
"""


class BlobReference(NamedTuple):
    """A row that names a blob."""

    team_id: UUID
    id: UUID
    blob: str
    size: int | None


async def page(
    pool: asyncpg.Pool, table: ReferencingTable, after: tuple[UUID, UUID], limit: int
) -> list[BlobReference]:
    """Return the next rows of a table that name a blob."""
    return [BlobReference(**row) for row in await pool.fetch(table.page, *after, limit, timeout=TIMEOUT)]


async def blob_of(pool: asyncpg.Pool, table: ReferencingTable, row: BlobReference) -> str | None:
    """Return the blob that a row names by now."""
    blob: str | None = await pool.fetchval(table.again, row.team_id, row.id)
    return blob


async def begin_list(conn: Connection) -> None:
    """Make the empty list of this session."""
    await drop_list(conn)
    await conn.execute("CREATE TEMPORARY TABLE listed_blobs (key text NOT NULL)")


async def add_to_list(conn: Connection, keys: Sequence[str]) -> None:
    """Add these keys to the list."""
    await conn.copy_records_to_table("listed_blobs", records=[(key,) for key in keys])


async def finish_list(conn: Connection) -> None:
    """Let PostgreSQL know how long the list is."""
    await conn.execute("ANALYZE listed_blobs")


async def delete_named(conn: Connection) -> int:
    """Delete from the list what rows name; return how many keys are left."""
    await conn.execute(DELETE_NAMED, timeout=TIMEOUT)
    count: int = await conn.fetchval("SELECT count(*) FROM listed_blobs")
    return count


async def listed(conn: Connection, prefetch: int) -> AsyncIterator[str]:
    """Return the keys of the list."""
    async for row in conn.cursor("SELECT key FROM listed_blobs", prefetch=prefetch, timeout=TIMEOUT):
        yield row["key"]


async def drop_list(conn: Connection) -> None:
    """Remove the list."""
    await conn.execute("DROP TABLE IF EXISTS listed_blobs")


async def named(conn: Connection) -> int:
    """Return how many rows name a blob."""
    count: int = await conn.fetchval(NAMED, timeout=TIMEOUT)
    return count
