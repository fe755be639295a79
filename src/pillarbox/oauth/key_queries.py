"""SQL of the keys that sign access tokens. They are the installation's."""

from __future__ import annotations

from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

from pillarbox.kernel.postgres.database import Connection, Source
from pillarbox.kernel.security.sealed_values import SealedColumn
from pillarbox.kernel.work.collectors import changed

LOCK: Final = 0x70696C6C_6F617574

OAUTH_KEYS: Final = SealedColumn(
    table="oauth_keys",
    sentence="The private key {owner} of access tokens",
    cure="no new tokens are signed with it: `pillarbox oauth rotate-keys` makes another key.",
    read="""
    SELECT '00000000-0000-0000-0000-000000000000'::uuid AS team_id, id, private AS sealed, kid AS owner
      FROM oauth_keys
     ORDER BY id
    """,
    replace="""
    UPDATE oauth_keys SET private = $4 WHERE $1::uuid IS NOT NULL AND id = $2 AND private = $3
    """,
)


class SigningKeyRow(NamedTuple):
    """A key: the public half as JSON text, the private one sealed."""

    id: UUID
    kid: str
    public: str
    private: bytes
    active_at: datetime


async def lock(conn: Connection) -> None:
    """Lock the keys: nobody else adds or retires one until the transaction ends."""
    await conn.execute("SELECT pg_advisory_xact_lock($1)", LOCK)


async def published(source: Source) -> list[SigningKeyRow]:
    """Return the keys that are not retired, the oldest first."""
    rows = await source.fetch(
        """
        SELECT id, kid, public, private, active_at
          FROM oauth_keys
         WHERE retired_at IS NULL
         ORDER BY active_at, id
        """
    )
    return [SigningKeyRow(*row) for row in rows]


async def add(conn: Connection, key: SigningKeyRow, now: datetime) -> None:
    """Store a key."""
    await conn.execute(
        """
        INSERT INTO oauth_keys (id, kid, public, private, created_at, active_at)
        VALUES ($1, $2, $3::json, $4, $5, $6)
        """,
        key.id,
        key.kid,
        key.public,
        key.private,
        now,
        key.active_at,
    )


async def retire_replaced(conn: Connection, now: datetime, signing_since: datetime) -> int:
    """Retire the keys whose successor has signed since an instant, so that nothing which they signed is good
    any more; return how many."""
    return changed(
        await conn.execute(
            """
            UPDATE oauth_keys k
               SET retired_at = $1
             WHERE k.retired_at IS NULL
               AND EXISTS (SELECT FROM oauth_keys n
                            WHERE n.retired_at IS NULL AND n.active_at > k.active_at AND n.active_at <= $2)
            """,
            now,
            signing_since,
        )
    )


async def retire_others(conn: Connection, now: datetime, kept: UUID) -> None:
    """Retire all keys but this one."""
    await conn.execute(
        """
        UPDATE oauth_keys SET retired_at = $1 WHERE retired_at IS NULL AND id <> $2
        """,
        now,
        kept,
    )


async def remove_retired(conn: Connection, before: datetime) -> int:
    """Remove the keys that were retired before an instant; return how many."""
    return changed(
        await conn.execute(
            """
            DELETE FROM oauth_keys WHERE retired_at < $1
            """,
            before,
        )
    )
