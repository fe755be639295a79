"""The global index of API keys: the SHA-256 of a token names one key of one team."""

from __future__ import annotations

from uuid import UUID

from pillarbox.kernel.postgres.database import TeamDb


async def add(db: TeamDb, token_hash: bytes, key_id: UUID) -> bool:
    """Make the hash mean this key; False when it already means one."""
    added = await db.run(
        """
        INSERT INTO directory_keys (hash, team_id, key_id) VALUES ($2, $1, $3)
        ON CONFLICT (hash) DO NOTHING
        """,
        token_hash,
        key_id,
    )
    return added == 1


async def remove(db: TeamDb, key_id: UUID) -> None:
    """Make the key's token mean nothing."""
    await db.run("DELETE FROM directory_keys WHERE team_id = $1 AND key_id = $2", key_id)
