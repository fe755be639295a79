"""SQL of passkeys, and of what they have to sign. People belong to no team."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from pillarbox.kernel.postgres.database import Source


@dataclass(frozen=True, slots=True)
class StoredPasskey:
    """The stored facts of a passkey whose answer has to be checked."""

    person_id: UUID
    public_key: bytes
    sign_count: int


@dataclass(frozen=True, slots=True)
class ShownPasskey:
    """A passkey as its owner sees it."""

    id: bytes
    name: str
    transports: list[str]
    created_at: datetime
    last_used_at: datetime | None


@dataclass(frozen=True, slots=True)
class NewPasskey:
    """A passkey that was made."""

    id: bytes
    person_id: UUID
    public_key: bytes
    sign_count: int
    transports: Sequence[str]
    name: str


async def store_challenge(
    source: Source,
    token_hash: bytes,
    person_id: UUID | None,
    purpose: str,
    challenge: bytes,
    expires_at: datetime,
) -> None:
    await source.execute(
        """
        INSERT INTO person_challenges (hash, person_id, purpose, challenge, expires_at)
        VALUES ($1, $2, $3, $4, $5)
        """,
        token_hash,
        person_id,
        purpose,
        challenge,
        expires_at,
    )


async def take_challenge(
    source: Source, token_hash: bytes, person_id: UUID | None, purpose: str, now: datetime
) -> bytes | None:
    """Take the challenge, which nobody can take again; None where there is none of this person and
    purpose."""
    found: bytes | None = await source.fetchval(
        """
        DELETE FROM person_challenges
         WHERE hash = $1 AND person_id IS NOT DISTINCT FROM $2 AND purpose = $3 AND expires_at > $4
        RETURNING challenge
        """,
        token_hash,
        person_id,
        purpose,
        now,
    )
    return found


async def store(source: Source, passkey: NewPasskey, now: datetime, limit: int) -> bool:
    """Keep a passkey; False where its id is known, or its person has as many as it may."""
    found = await source.fetchval(
        """
        INSERT INTO person_passkeys (id, person_id, public_key, sign_count, transports, name, created_at)
        SELECT $1, $2, $3, $4, $5, $6, $7
         WHERE (SELECT count(*) FROM person_passkeys WHERE person_id = $2) < $8
        ON CONFLICT (id) DO NOTHING
        RETURNING true
        """,
        passkey.id,
        passkey.person_id,
        passkey.public_key,
        passkey.sign_count,
        passkey.transports,
        passkey.name,
        now,
        limit,
    )
    return found is not None


async def of_id(source: Source, passkey_id: bytes) -> StoredPasskey | None:
    """Return a passkey of somebody who may log in."""
    row = await source.fetchrow(
        """
        SELECT k.person_id, k.public_key, k.sign_count
          FROM person_passkeys k
          JOIN people p ON p.id = k.person_id
         WHERE k.id = $1 AND p.disabled_at IS NULL
        """,
        passkey_id,
    )
    return None if row is None else StoredPasskey(**row)


async def use(source: Source, passkey_id: bytes, sign_count: int, now: datetime) -> bool:
    """Note that it signed; False where it is gone, or another answer with this count or a later one came
    first. Passkeys that do not count stay at 0."""
    found = await source.fetchval(
        """
        UPDATE person_passkeys SET sign_count = $2, last_used_at = $3
         WHERE id = $1 AND (sign_count < $2 OR (sign_count = 0 AND $2 = 0))
        RETURNING true
        """,
        passkey_id,
        sign_count,
        now,
    )
    return found is not None


async def of_person(source: Source, person_id: UUID) -> list[ShownPasskey]:
    """Return all passkeys of the person, the oldest first."""
    rows = await source.fetch(
        """
        SELECT id, name, transports, created_at, last_used_at
          FROM person_passkeys
         WHERE person_id = $1
         ORDER BY created_at, id
        """,
        person_id,
    )
    return [ShownPasskey(**row) for row in rows]


async def remove(source: Source, person_id: UUID, passkey_id: bytes) -> str | None:
    """Forget it: what it was called, or None where the person has no such one."""
    found: str | None = await source.fetchval(
        "DELETE FROM person_passkeys WHERE person_id = $1 AND id = $2 RETURNING name", person_id, passkey_id
    )
    return found


async def remove_all(source: Source, person_id: UUID) -> int:
    """Forget all of a person; how many there were."""
    status: str = await source.execute("DELETE FROM person_passkeys WHERE person_id = $1", person_id)
    return int(status.rpartition(" ")[2])
