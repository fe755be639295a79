"""SQL of commands that look at a database whose schema may be older than this release's."""

from __future__ import annotations

from typing import NamedTuple

from pillarbox.kernel.postgres.database import Connection


class TableSize(NamedTuple):
    """A table: the database's estimate of its rows, and its octets with those of its indexes."""

    rows: int
    octets: int


async def last_target(conn: Connection) -> str | None:
    """Return where the last backup went."""
    place: str | None = await conn.fetchval("SELECT target FROM backups ORDER BY snapshot_at DESC LIMIT 1")
    return place


async def table_size(conn: Connection, table: str) -> TableSize | None:
    """Return the size of a table; None where it is not there."""
    row = await conn.fetchrow(
        """
        SELECT c.reltuples::bigint AS rows, pg_total_relation_size(c.oid) AS octets
          FROM pg_class c
         WHERE c.oid = to_regclass($1)
        """,
        table,
    )
    return None if row is None else TableSize(max(0, row["rows"]), row["octets"])


async def database_size(conn: Connection) -> int:
    """Return the octets of the database."""
    return int(await conn.fetchval("SELECT pg_database_size(current_database())"))


async def long_transactions(conn: Connection) -> int:
    """Return how many transactions have been open for over a minute."""
    found: int = await conn.fetchval(
        """
        SELECT count(*) FROM pg_stat_activity
         WHERE datname = current_database() AND pid <> pg_backend_pid()
           AND xact_start < now() - interval '1 minute'
        """
    )
    return found
