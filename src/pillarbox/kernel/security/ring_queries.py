"""SQL of the keys of the key ring that the database needs. The table is the installation's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from pillarbox.kernel.postgres.database import Connection, Source

LOCK: Final = 0x70696C6C_6B657973


class KnownKey(NamedTuple):
    """A key that the database needs, with something that only this key opens."""

    id: str
    probe: bytes
    context: bytes
    is_abandoned: bool


async def lock(conn: Connection) -> None:
    """Be the only one who changes which keys are known until the transaction ends."""
    await conn.execute("SELECT pg_advisory_xact_lock($1)", LOCK)


async def known(source: Source) -> list[KnownKey]:
    """Return the keys that have sealed something in this database, the oldest first."""
    rows = await source.fetch(
        """
        SELECT id, probe, context, abandoned_at IS NOT NULL AS is_abandoned
          FROM key_ring_keys
         ORDER BY since, id
        """
    )
    return [KnownKey(**row) for row in rows]


async def add(source: Source, key_id: str, probe: bytes, context: bytes) -> None:
    """Store a key with something that it has sealed, unless it is known."""
    await source.execute(
        "INSERT INTO key_ring_keys (id, probe, context) VALUES ($1, $2, $3) ON CONFLICT (id) DO NOTHING",
        key_id,
        probe,
        context,
    )


async def abandon(source: Source, key_id: str) -> bool:
    """Ask for this key no more; False where it is not one that is asked for."""
    status: str = await source.execute(
        "UPDATE key_ring_keys SET abandoned_at = now() WHERE id = $1 AND abandoned_at IS NULL", key_id
    )
    return status.endswith(" 1")


async def ask_again(source: Source, key_ids: Sequence[str]) -> None:
    """Ask for these keys again, as far as they were abandoned."""
    await source.execute(
        "UPDATE key_ring_keys SET abandoned_at = NULL WHERE id = ANY ($1) AND abandoned_at IS NOT NULL",
        key_ids,
    )


async def remove_others(conn: Connection, needed: Sequence[str]) -> None:
    """Forget all keys but these."""
    await conn.execute("DELETE FROM key_ring_keys WHERE id <> ALL ($1::text[])", needed)
