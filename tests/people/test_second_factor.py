"""The second factor: set up, given once, taken from two sides at the same time, removed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import asyncpg
import pytest

from pillarbox.kernel.postgres.database import open_pool
from pillarbox.kernel.security import sealed_values
from pillarbox.kernel.security.secrets import KeyRing, SealBroken
from pillarbox.people.factors import recovery_codes, second_factor
from pillarbox.people.factors.factor_queries import SEEDS
from pillarbox.people.factors.second_factor import Factor, SecondFactor
from pillarbox.people.factors.totp import STEP_SECONDS, code_of, step_at

NOON = datetime(2026, 11, 23, 12, tzinfo=UTC)
STEP = timedelta(seconds=STEP_SECONDS)
RING = KeyRing.parse(KeyRing.generate_text())


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody with what it takes to ask about the second factor."""

    pool: asyncpg.Pool
    id: UUID
    factor: SecondFactor

    async def seed(self) -> bytes:
        sealed = await self.pool.fetchval("SELECT totp FROM people WHERE id = $1", self.id)
        return self.factor.ring.open(sealed, SEEDS.context(self.id))

    async def code(self, at: datetime = NOON) -> str:
        return code_of(await self.seed(), step_at(at))

    async def accepts(self, code: str, at: datetime = NOON) -> Factor | None:
        async with self.pool.acquire() as conn, conn.transaction():
            return await self.factor.accept(conn, at, self.id, code)

    async def finishes(self, code: str, at: datetime = NOON) -> list[str] | None:
        async with self.pool.acquire() as conn, conn.transaction():
            return await self.factor.finish(conn, at, self.id, code)

    async def sets_up(self) -> list[str]:
        """With the code of noon, which is used then."""
        assert await self.factor.begin(self.pool, self.id)
        codes = await self.finishes(await self.code())
        assert codes is not None
        return codes


async def a_person(pool: asyncpg.Pool, factor: SecondFactor | None = None) -> Person:
    person_id = uuid4()
    await pool.execute(
        "INSERT INTO people (id, email, email_key, created_at) VALUES ($1, $2, $2, $3)",
        person_id,
        f"{person_id}@harbor.example",
        NOON,
    )
    return Person(pool, person_id, factor or SecondFactor(RING))


@asynccontextmanager
async def somebody(url: str) -> AsyncIterator[Person]:
    pool = await open_pool(url, limit=8)
    try:
        yield await a_person(pool)
    finally:
        await pool.close()


async def test_a_seed_counts_from_its_first_code_on(database_url: str) -> None:
    """SEC-02."""
    async with somebody(database_url) as ada:
        assert await ada.accepts("123456") is None
        assert await ada.factor.begin(ada.pool, ada.id)
        shown = await ada.factor.enrolment(ada.pool, ada.id, "ada@harbor.example")
        assert shown is not None
        assert shown.text.replace(" ", "") in shown.uri
        code = await ada.code()
        assert await ada.accepts(code) is None, "nobody has confirmed it yet"
        wrong = f"{(int(code) + 1) % 1_000_000:06}"
        assert await ada.finishes(wrong) is None
        codes = await ada.finishes(f"{code[:3]} {code[3:]}")
        assert codes is not None
        assert len(set(codes)) == recovery_codes.COUNT
        assert await ada.factor.enrolment(ada.pool, ada.id, "ada@harbor.example") is None
        assert not await ada.factor.begin(ada.pool, ada.id), "another one would take its place"
        assert await ada.finishes(await ada.code(NOON + STEP)) is None


async def test_a_code_is_taken_once(database_url: str) -> None:
    async with somebody(database_url) as ada:
        await ada.sets_up()
        assert await ada.accepts(await ada.code()) is None, "it was used to set it up"
        later = NOON + STEP
        assert await ada.accepts(await ada.code(later), later) is Factor.TOTP
        assert await ada.accepts(await ada.code(later), later) is None
        assert await ada.accepts(await ada.code(), later) is None, "an earlier one"


async def test_of_codes_that_arrive_together_one_passes(database_url: str) -> None:
    async with somebody(database_url) as ada:
        codes = await ada.sets_up()
        later = NOON + STEP
        code = await ada.code(later)
        found = await asyncio.gather(*[ada.accepts(code, later) for _ in range(8)])
        assert sorted(map(str, found)) == sorted(["Factor.TOTP", *["None"] * 7])
        found = await asyncio.gather(*[ada.accepts(codes[0]) for _ in range(8)])
        assert sorted(map(str, found)) == sorted(["Factor.RECOVERY", *["None"] * 7])


async def test_of_two_that_finish_setting_up_one_sees_the_codes(database_url: str) -> None:
    async with somebody(database_url) as ada:
        assert await ada.factor.begin(ada.pool, ada.id)
        code = await ada.code()
        found = await asyncio.gather(*[ada.finishes(code) for _ in range(6)])
        (shown,) = [codes for codes in found if codes is not None]
        assert await ada.accepts(shown[0]) is Factor.RECOVERY


async def test_each_recovery_code_works_once_and_for_its_person_alone(database_url: str) -> None:
    async with somebody(database_url) as ada:
        codes = await ada.sets_up()
        bob = await a_person(ada.pool)
        await bob.sets_up()
        assert await bob.accepts(codes[0]) is None
        assert await ada.accepts(codes[0].upper().replace("-", " ")) is Factor.RECOVERY
        assert await ada.accepts(codes[0]) is None
        for code in codes[1:]:
            assert await ada.accepts(code) is Factor.RECOVERY
        stored = await ada.pool.fetch("SELECT hash::text AS h FROM person_recovery_codes")
        assert not any(codes[1].replace("-", "") in row["h"] for row in stored)


async def test_new_recovery_codes_replace_the_old_ones(database_url: str) -> None:
    async with somebody(database_url) as ada:
        async with ada.pool.acquire() as conn, conn.transaction():
            assert await ada.factor.new_codes(conn, ada.id) is None
        old = await ada.sets_up()
        async with ada.pool.acquire() as conn, conn.transaction():
            new = await ada.factor.new_codes(conn, ada.id)
        assert new is not None
        assert await ada.accepts(old[0]) is None
        assert await ada.accepts(new[0]) is Factor.RECOVERY


async def test_what_is_removed_opens_nothing(database_url: str) -> None:
    async with somebody(database_url) as ada:
        codes = await ada.sets_up()
        async with ada.pool.acquire() as conn, conn.transaction():
            assert await second_factor.remove(conn, ada.id)
        assert await ada.accepts(codes[0]) is None
        assert await ada.accepts("123456") is None
        async with ada.pool.acquire() as conn, conn.transaction():
            assert not await second_factor.remove(conn, ada.id)


@pytest.mark.parametrize("code", ["", " ", "0" * 7, "١٢٣٤٥٦", "x" * 10_000, "\ud800", "a\0b", "-" * 6])
async def test_what_is_no_code_is_refused(database_url: str, code: str) -> None:
    async with somebody(database_url) as ada:
        await ada.sets_up()
        assert await ada.accepts(code) is None
        assert await ada.finishes(code) is None


async def test_a_seed_is_sealed_for_its_row_and_sealed_again_with_a_new_key(database_url: str) -> None:
    """SEC-04."""
    async with somebody(database_url) as ada:
        await ada.sets_up()
        seed = await ada.seed()
        bob = await a_person(ada.pool)
        statement = "UPDATE people SET totp = $2, totp_confirmed_at = $3 WHERE id = $1"
        sealed = await ada.pool.fetchval("SELECT totp FROM people WHERE id = $1", ada.id)
        await ada.pool.execute(statement, bob.id, sealed, NOON)
        with pytest.raises(SealBroken):
            await bob.accepts("123456")
        await ada.pool.execute("DELETE FROM people WHERE id = $1", bob.id)

        new = KeyRing([("new", bytes(32)), *RING._keys.items()])
        assert await sealed_values.reseal(ada.pool, [SEEDS], new) == 1
        found = await sealed_values.counted(ada.pool, [SEEDS], KeyRing([("new", bytes(32))]))
        assert (found.by_key, found.unopened) == ({"new": 1}, [])
        ada = Person(ada.pool, ada.id, SecondFactor(new))
        assert await ada.seed() == seed
        (unopened,) = (await sealed_values.counted(ada.pool, [SEEDS], None)).unopened
        assert "pillarbox people reset --factors" in unopened.sentence
