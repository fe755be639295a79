"""The second factor: codes of a phone, and recovery codes in its place (docs/decisions/0106).

A seed is stored when setting it up begins, and counts when a code of it was given. Each code, of the phone or
for recovery, is taken once: of two that arrive together the database lets one pass.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Final
from uuid import UUID

from pillarbox.kernel.postgres.database import Connection, Source
from pillarbox.kernel.security.secrets import KeyRing
from pillarbox.people.factors import factor_queries as queries
from pillarbox.people.factors import recovery_codes, totp
from pillarbox.people.factors.factor_queries import SEEDS, StoredSeed

ISSUER: Final = "Pillarbox"
"""The name of the account on phones, beside its address."""


class Factor(Enum):
    """How somebody gave the second factor, as sessions name it."""

    TOTP = "totp"
    RECOVERY = "recovery"


@dataclass(frozen=True, slots=True)
class Enrolment:
    """The enrolment of a phone: the seed as text and as a URI."""

    text: str
    uri: str


@dataclass(frozen=True, slots=True)
class SecondFactor:
    """Sets up, checks and removes the second factor of people. Each call that writes is one transaction of
    the caller's."""

    ring: KeyRing

    async def begin(self, source: Source, person_id: UUID) -> bool:
        """Make a new seed; False where the person has a second factor already."""
        sealed = self.ring.seal(totp.new_seed(), SEEDS.context(person_id))
        return await queries.store_seed(source, person_id, sealed)

    async def enrolment(self, source: Source, person_id: UUID, email: str) -> Enrolment | None:
        """Return the enrolment of the seed that waits to be confirmed; None where none does."""
        stored = await queries.seed(source, person_id)
        if stored is None or stored.is_confirmed:
            return None
        seed = self._seed(person_id, stored)
        return Enrolment(totp.as_text(seed), totp.as_uri(seed, email, ISSUER))

    async def finish(self, conn: Connection, now: datetime, person_id: UUID, code: str) -> list[str] | None:
        """Let the seed count, where this is a code of it: the recovery codes, which nobody can see again.
        None where it is not, and where no seed waits."""
        stored = await queries.seed(conn, person_id)
        if stored is None or stored.is_confirmed:
            return None
        step = totp.step_of(self._seed(person_id, stored), _digits(code), now, stored.step)
        if step is None or not await queries.confirm_seed(conn, person_id, stored.sealed, step, now):
            return None
        return await self._codes(conn, person_id)

    async def accept(self, conn: Connection, now: datetime, person_id: UUID, code: str) -> Factor | None:
        """Take a code of the phone or for recovery; None where it is neither, or was taken before."""
        digits = _digits(code)
        if len(digits) != totp.DIGITS:
            is_taken = await queries.use_code(conn, person_id, recovery_codes.hash_of(person_id, code), now)
            return Factor.RECOVERY if is_taken else None
        stored = await queries.seed(conn, person_id)
        if stored is None or not stored.is_confirmed:
            return None
        step = totp.step_of(self._seed(person_id, stored), digits, now, stored.step)
        is_taken = step is not None and await queries.use_step(conn, person_id, step)
        return Factor.TOTP if is_taken else None

    async def new_codes(self, conn: Connection, person_id: UUID) -> list[str] | None:
        """Replace the person's recovery codes and return the new ones; None without a second factor."""
        if not await queries.is_required(conn, person_id):
            return None
        return await self._codes(conn, person_id)

    async def _codes(self, conn: Connection, person_id: UUID) -> list[str]:
        codes = recovery_codes.new_codes()
        await queries.remove_codes(conn, person_id)
        hashes = [recovery_codes.hash_of(person_id, code) for code in codes]
        await queries.store_codes(conn, person_id, hashes)
        return codes

    def _seed(self, person_id: UUID, stored: StoredSeed) -> bytes:
        return self.ring.open(stored.sealed, SEEDS.context(person_id))


async def remove(conn: Connection, person_id: UUID) -> bool:
    """Forget the seed and the recovery codes; False where there was no second factor."""
    if not await queries.remove_seed(conn, person_id):
        return False
    await queries.remove_codes(conn, person_id)
    return True


def _digits(code: str) -> str:
    """Return a code without the blanks that phones show in it; "" where it is not of digits alone."""
    text = "".join(code.split())
    return text if text.isascii() and text.isdigit() else ""
