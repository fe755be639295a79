"""SQL of the second factor. People belong to no team."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from pillarbox.kernel.postgres.database import Source
from pillarbox.kernel.security.sealed_values import SealedColumn


@dataclass(frozen=True, slots=True)
class StoredSeed:
    """The sealed seed of a person, and the last time step of which a code was used."""

    sealed: bytes
    is_confirmed: bool
    step: int


async def store_seed(source: Source, person_id: UUID, sealed: bytes) -> bool:
    """Keep a seed that has still to be confirmed; False where the person has a second factor already."""
    found = await source.fetchval(
        """
        UPDATE people SET totp = $2, totp_step = 0
         WHERE id = $1 AND totp_confirmed_at IS NULL
        RETURNING true
        """,
        person_id,
        sealed,
    )
    return found is not None


async def seed(source: Source, person_id: UUID) -> StoredSeed | None:
    row = await source.fetchrow(
        """
        SELECT totp AS sealed, totp_confirmed_at IS NOT NULL AS is_confirmed, totp_step AS step
          FROM people
         WHERE id = $1 AND totp IS NOT NULL
        """,
        person_id,
    )
    return None if row is None else StoredSeed(**row)


async def confirm_seed(source: Source, person_id: UUID, sealed: bytes, step: int, now: datetime) -> bool:
    """Let the seed count from now on; False where it is not the one that waits, or counts already."""
    found = await source.fetchval(
        """
        UPDATE people SET totp_confirmed_at = $4, totp_step = $3
         WHERE id = $1 AND totp = $2 AND totp_confirmed_at IS NULL
        RETURNING true
        """,
        person_id,
        sealed,
        step,
        now,
    )
    return found is not None


async def use_step(source: Source, person_id: UUID, step: int) -> bool:
    """Take the code of a time step; False where it, or a later one, was taken before."""
    found = await source.fetchval(
        """
        UPDATE people SET totp_step = $2
         WHERE id = $1 AND totp_step < $2 AND totp_confirmed_at IS NOT NULL
        RETURNING true
        """,
        person_id,
        step,
    )
    return found is not None


async def remove_seed(source: Source, person_id: UUID) -> bool:
    """Forget the seed; False where none counted."""
    found = await source.fetchval(
        """
        UPDATE people SET totp = NULL, totp_confirmed_at = NULL, totp_step = 0
         WHERE id = $1 AND totp_confirmed_at IS NOT NULL
        RETURNING true
        """,
        person_id,
    )
    return found is not None


async def is_required(source: Source, person_id: UUID) -> bool:
    """Return whether the person has a second factor that counts. The row is locked until the transaction
    ends, so that it stays so."""
    found: bool | None = await source.fetchval(
        "SELECT totp_confirmed_at IS NOT NULL FROM people WHERE id = $1 FOR UPDATE", person_id
    )
    return found is True


async def remove_codes(source: Source, person_id: UUID) -> None:
    await source.execute("DELETE FROM person_recovery_codes WHERE person_id = $1", person_id)


async def store_codes(source: Source, person_id: UUID, hashes: Sequence[bytes]) -> None:
    await source.execute(
        """
        INSERT INTO person_recovery_codes (person_id, hash)
        SELECT $1, h FROM unnest($2::bytea[]) AS h
        """,
        person_id,
        hashes,
    )


async def use_code(source: Source, person_id: UUID, code_hash: bytes, now: datetime) -> bool:
    """Take a recovery code; False where there is no such one, or it was taken before."""
    found = await source.fetchval(
        """
        UPDATE person_recovery_codes SET used_at = $3
         WHERE person_id = $1 AND hash = $2 AND used_at IS NULL
        RETURNING true
        """,
        person_id,
        code_hash,
        now,
    )
    return found is not None


# People belong to no team: theirs is the team 0.
SEEDS: Final = SealedColumn(
    table="people",
    sentence="The second factor of the person {owner}",
    cure="`pillarbox people reset --factors` removes it, and the person sets up a new one.",
    read="""
    SELECT '00000000-0000-0000-0000-000000000000'::uuid AS team_id, id, totp AS sealed, email AS owner
      FROM people
     WHERE totp IS NOT NULL
     ORDER BY id
    """,
    replace="UPDATE people SET totp = $4 WHERE $1::uuid IS NOT NULL AND id = $2 AND totp = $3",
)
