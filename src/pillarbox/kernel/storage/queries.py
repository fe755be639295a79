"""SQL of the blob store: which one it is, and whether blobs may be deleted."""

from __future__ import annotations

from typing import Final
from uuid import UUID

from pillarbox.kernel.postgres.database import Connection, Source

DELETION_LOCK: Final = 0x70696C6C_6261636B
ID_LOCK: Final = 0x70696C6C_626C6F62


async def may_delete(source: Source) -> bool:
    """Tell whether no session forbids that blobs are deleted."""
    allowed: bool = await source.fetchval("SELECT pg_try_advisory_xact_lock_shared($1)", DELETION_LOCK)
    return allowed


async def forbid_deletion(conn: Connection) -> bool:
    """Forbid that blobs are deleted until this session ends; False where others hold the lock."""
    held: bool = await conn.fetchval("SELECT pg_try_advisory_lock($1)", DELETION_LOCK)
    return held


async def lock_store_id(conn: Connection) -> None:
    """Be the only one who chooses the store of this database until the transaction ends."""
    await conn.execute("SELECT pg_advisory_xact_lock($1)", ID_LOCK)


# The table is the installation's.
async def store_id(source: Source) -> UUID | None:
    """Return the id of the store of this database; None before one was used."""
    known: UUID | None = await source.fetchval("SELECT store_id FROM blob_store")
    return known


async def add_store_id(conn: Connection, store_id: UUID) -> None:
    """Make the store of this id the one of this database."""
    await conn.execute("INSERT INTO blob_store (store_id) VALUES ($1)", store_id)
