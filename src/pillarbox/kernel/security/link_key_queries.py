"""SQL of the keys of links in sent mail. The table is the installation's."""

from __future__ import annotations

from datetime import datetime
from typing import Final, NamedTuple

from pillarbox.kernel.postgres.database import Connection, Source
from pillarbox.kernel.security.sealed_values import SealedColumn

LOCK: Final = 0x70696C6C_6C696E6B

# A value is bound to a UUID that says the number of its key.
LINK_KEYS: Final = SealedColumn(
    table="link_keys",
    sentence="The key {owner} of links in sent mail",
    cure="links that were made with it answer that they are unknown, and new mail gets links of another key.",
    read="""
    SELECT '00000000-0000-0000-0000-000000000000'::uuid AS team_id,
           lpad(to_hex(id::integer), 32, '0')::uuid AS id, sealed, id::text AS owner
      FROM link_keys
     ORDER BY id
    """,
    replace="""
    UPDATE link_keys SET sealed = $4
     WHERE $1::uuid IS NOT NULL AND lpad(to_hex(id::integer), 32, '0')::uuid = $2 AND sealed = $3
    """,
)


class LinkKeyRow(NamedTuple):
    """A key, as it is stored."""

    id: int
    sealed: bytes
    created_at: datetime


async def lock(conn: Connection) -> None:
    """Be the only one who adds a key until the transaction ends."""
    await conn.execute("SELECT pg_advisory_xact_lock($1)", LOCK)


async def every(source: Source) -> list[LinkKeyRow]:
    """Return all keys by their numbers."""
    rows = await source.fetch(
        """
        SELECT id, sealed, created_at FROM link_keys ORDER BY id
        """
    )
    return [LinkKeyRow(*row) for row in rows]


async def add(conn: Connection, number: int, sealed: bytes, now: datetime) -> None:
    """Store a key."""
    await conn.execute(
        """
        INSERT INTO link_keys (id, sealed, created_at) VALUES ($1, $2, $3)
        """,
        number,
        sealed,
        now,
    )
