"""SQL of changes of the address that somebody logs in with. People belong to no team."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from pillarbox.kernel.postgres.database import Connection, Source
from pillarbox.kernel.work.collectors import changed


@dataclass(frozen=True, slots=True)
class PendingChange:
    """A change that waits for its link."""

    email: str
    expires_at: datetime


async def ask(
    conn: Connection, person_id: UUID, hash_: bytes, email: str, now: datetime, expires_at: datetime
) -> None:
    """Store a change in place of an earlier one, whose link does not work any more."""
    await conn.execute(
        """
        INSERT INTO person_address_changes (person_id, hash, email, created_at, expires_at)
        VALUES ($1, $2, $3, $4, $5)
        ON CONFLICT (person_id) DO UPDATE
           SET hash = excluded.hash, email = excluded.email, created_at = excluded.created_at,
               expires_at = excluded.expires_at
        """,
        person_id,
        hash_,
        email,
        now,
        expires_at,
    )


async def pending(source: Source, person_id: UUID, now: datetime) -> PendingChange | None:
    """Return the change of a person that waits."""
    row = await source.fetchrow(
        "SELECT email, expires_at FROM person_address_changes WHERE person_id = $1 AND expires_at > $2",
        person_id,
        now,
    )
    return None if row is None else PendingChange(**row)


async def find(source: Source, hash_: bytes, person_id: UUID, now: datetime) -> str | None:
    """Return the address that this person's link leads to."""
    email: str | None = await source.fetchval(
        "SELECT email FROM person_address_changes WHERE hash = $1 AND person_id = $2 AND expires_at > $3",
        hash_,
        person_id,
        now,
    )
    return email


async def use(conn: Connection, hash_: bytes, person_id: UUID, now: datetime) -> str | None:
    """Return the address that this person's link leads to; the link does not work any more afterwards."""
    email: str | None = await conn.fetchval(
        """
        DELETE FROM person_address_changes
         WHERE hash = $1 AND person_id = $2 AND expires_at > $3
        RETURNING email
        """,
        hash_,
        person_id,
        now,
    )
    return email


async def end(conn: Connection, person_id: UUID) -> str | None:
    """End the change of a person; return the address that it led to."""
    email: str | None = await conn.fetchval(
        "DELETE FROM person_address_changes WHERE person_id = $1 RETURNING email",
        person_id,
    )
    return email


async def remove_old(source: Source, before: datetime, limit: int) -> int:
    """Remove up to `limit` changes that expired before an instant; return how many."""
    return changed(
        await source.execute(
            """
            DELETE FROM person_address_changes
             WHERE person_id IN (SELECT person_id FROM person_address_changes WHERE expires_at < $1 LIMIT $2)
            """,
            before,
            limit,
        )
    )


async def set_address(conn: Connection, person_id: UUID, email: str, key: str) -> None:
    """Store another address to log in with."""
    await conn.execute("UPDATE people SET email = $2, email_key = $3 WHERE id = $1", person_id, email, key)


# Across teams: those of one person.
async def follow(conn: Connection, person_id: UUID, email: str) -> None:
    """Give the person's memberships another address. A team that has the address for itself keeps both."""
    await conn.execute(
        """
        UPDATE team_members m
           SET email = $2
         WHERE m.person_id = $1
           AND NOT EXISTS (SELECT FROM team_members o
                            WHERE o.team_id = m.team_id AND o.id <> m.id AND lower(o.email) = lower($2))
        """,
        person_id,
        email,
    )
