"""A pool in which nobody waits longer than its time limit, and nobody else suffers for it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Iterator
from contextlib import asynccontextmanager
from uuid import UUID

import asyncpg
import pytest

from kit.database_link import DatabaseLink, database_link
from pillarbox.kernel.postgres import bounded_pool
from pillarbox.kernel.postgres.bounded_pool import BoundedPool, close_within
from pillarbox.kernel.postgres.database import GONE, open_pool, transaction
from pillarbox.kernel.postgres.time_limit import STEP, TimeLimit, renew

LIMIT = 0.3
SLACK = 2.0
WORKING = (
    "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%pg_sleep(3600)%' AND pid <> pg_backend_pid()"
)


@asynccontextmanager
async def pool_of(url: str, most: int = 2) -> AsyncIterator[BoundedPool]:
    pool = await open_pool(url, limit=most)
    try:
        yield pool
    finally:
        await close_within(pool, 1)


async def gone_in_time(work: Awaitable[object]) -> None:
    began = time.monotonic()
    with pytest.raises(GONE):
        await work
    assert time.monotonic() - began < LIMIT + STEP + SLACK


async def test_a_statement_that_takes_too_long_is_given_up_here_and_there(database_url: str) -> None:
    """The connection is closed at once, and PostgreSQL does not go on with what nobody waits for."""
    async with pool_of(database_url) as pool:
        with TimeLimit(LIMIT):
            await gone_in_time(pool.execute("SELECT pg_sleep(3600)"))
        async with asyncio.timeout(10):
            while await pool.fetchval(WORKING):
                await asyncio.sleep(0.02)


async def test_a_transaction_on_a_database_that_says_nothing_ends_in_time(database_url: str) -> None:
    """Its ROLLBACK is not waited for either."""
    async with database_link(database_url) as wire, pool_of(wire.url) as pool:

        async def stuck(wire: DatabaseLink) -> None:
            async with transaction(pool) as conn:
                await conn.execute("SELECT 1")
                wire.stall()
                await conn.execute("SELECT 2")

        with TimeLimit(LIMIT):
            await gone_in_time(stuck(wire))
        with TimeLimit(LIMIT):
            # The other connection, or a new one: neither is answered.
            await gone_in_time(pool.fetchval("SELECT 3"))
        wire.flow()
        with TimeLimit(10):
            assert await pool.fetchval("SELECT 4") == 4


async def copy(pool: BoundedPool, wire: DatabaseLink) -> None:
    """COPY of more than the connection takes at once, to a database that stops reading."""

    def lines() -> Iterator[tuple[str]]:
        # It is asked for when PostgreSQL has said that it takes them.
        wire.stall()
        yield from [("x" * 100_000,)] * 100

    async with transaction(pool) as conn:
        await conn.execute("CREATE TEMPORARY TABLE lines (line text) ON COMMIT DROP")
        await conn.copy_records_to_table("lines", records=lines())


async def test_a_copy_to_a_silent_database_ends_in_time(database_url: str) -> None:
    """What waits for room in the connection is given up as well."""
    async with database_link(database_url) as wire, pool_of(wire.url) as pool:
        with TimeLimit(LIMIT):
            await gone_in_time(copy(pool, wire))
        wire.flow()
        with TimeLimit(10):
            assert await pool.fetchval("SELECT 1") == 1


async def test_a_copy_whose_connection_is_lost_ends_at_once(database_url: str) -> None:
    async with database_link(database_url) as wire, pool_of(wire.url) as pool:
        copying = asyncio.create_task(copy(pool, wire))
        await asyncio.sleep(0.2)
        assert not copying.done()
        wire.cut()
        async with asyncio.timeout(SLACK):
            await gone_in_time(copying)


async def test_a_task_that_is_cancelled_does_not_wait_for_a_silent_database(database_url: str) -> None:
    async with database_link(database_url) as wire, pool_of(wire.url) as pool:
        await pool.fetchval("SELECT 1")
        wire.stall()
        asking = asyncio.create_task(pool.fetchval("SELECT 2"))
        await asyncio.sleep(0.05)
        asking.cancel()
        done, _ = await asyncio.wait([asking], timeout=SLACK)
        assert done
        assert asking.cancelled()


async def test_the_limit_counts_the_time_with_the_database_alone(database_url: str) -> None:
    """What a request does elsewhere is not taken from it; what it does here adds up."""
    async with pool_of(database_url) as pool:
        with TimeLimit(20.0) as limit:
            await asyncio.sleep(0.2)
            assert limit.left == 20.0
            await pool.execute("SELECT pg_sleep(0.1)")
            await pool.execute("SELECT pg_sleep(0.1)")
            assert 0.0 < limit.left < 19.81


async def test_whoever_finds_too_many_waiting_is_refused_at_once(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounded_pool, "MOST_WAITING", 3)
    async with pool_of(database_url, most=1) as pool, pool.acquire():
        waiting = [asyncio.create_task(_limited(pool)) for _ in range(3)]
        await asyncio.sleep(0.05)
        began = time.monotonic()
        with pytest.raises(GONE):
            await _limited(pool)
        assert time.monotonic() - began < LIMIT
        assert all(
            isinstance(found, GONE) for found in await asyncio.gather(*waiting, return_exceptions=True)
        )


async def _limited(pool: BoundedPool) -> object:
    with TimeLimit(2 * LIMIT):
        return await pool.fetchval("SELECT 1")


async def test_background_work_may_take_longer_than_a_request(database_url: str) -> None:
    async with pool_of(database_url) as pool:
        with TimeLimit(LIMIT):
            await gone_in_time(pool.execute("SELECT pg_sleep(3600)"))
        await pool.execute("SELECT pg_sleep($1::float8)", LIMIT + 2 * STEP)


async def test_a_value_that_asyncpg_cannot_encode_does_not_look_like_a_lost_connection(
    database_url: str,
) -> None:
    async with pool_of(database_url) as pool:
        with pytest.raises(asyncpg.DataError) as refusal:
            await pool.fetchval("SELECT $1::integer", "berth")
        assert not isinstance(refusal.value, GONE)
        assert pool.get_idle_size() == pool.get_size()


async def test_a_connection_comes_back_without_a_round_trip_and_is_used_again(database_url: str) -> None:
    async with pool_of(database_url) as pool:
        pids = {await pool.fetchval("SELECT pg_backend_pid()") for _ in range(5)}
        assert len(pids) == 1


async def test_a_connection_that_died_beside_the_pool_is_replaced(database_url: str) -> None:
    async with pool_of(database_url) as pool:
        async with pool.acquire() as conn:
            conn.terminate()
        assert await pool.fetchval("SELECT 1") == 1


async def test_an_answer_in_parts_has_the_time_anew_for_each(database_url: str) -> None:
    """Though it has kept its connection all the time."""
    async with pool_of(database_url) as pool:
        with TimeLimit(LIMIT):
            async with pool.acquire() as conn:
                renew()
                await conn.execute("SELECT pg_sleep($1::float8)", LIMIT + 2 * STEP)


async def test_array_types_are_asked_for_once_in_a_process(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    known: dict[int, asyncpg.Record] = {}
    monkeypatch.setattr(bounded_pool, "_types", known)
    numbers = "SELECT $1::bigint[] || 3 AS bigs, ARRAY[$2::uuid] AS ids, ARRAY[now()] AS times"
    for is_first in (True, False):
        async with pool_of(database_url, 1) as pool, pool.acquire() as conn:
            asked: list[str] = []
            conn.add_query_logger(lambda query, asked=asked: asked.append(query.query))
            row = await conn.fetchrow(numbers, [1, 2], UUID(int=7))
            assert (row["bigs"], row["ids"]) == ([1, 2, 3], [UUID(int=7)])
            assert any("typeinfo_tree" in query for query in asked) == is_first
    assert {record["name"] for record in known.values()} >= {"_int8", "_uuid", "_timestamptz"}


async def test_types_of_one_database_are_asked_for_on_each_connection(database_url: str) -> None:
    """Their ids differ from database to database."""
    for name in ("berths", "quays"):
        async with pool_of(database_url, 1) as pool:
            await pool.execute(f"CREATE TYPE {name} AS (number int, is_free bool)")
            assert await pool.fetchval(f"SELECT ARRAY[(12, true)::{name}]") == [(12, True)]
    assert max(bounded_pool._types) < bounded_pool.FIRST_UNASSIGNED_OID
