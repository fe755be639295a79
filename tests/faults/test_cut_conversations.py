"""Conversations with PostgreSQL that end at any byte: whatever asyncpg makes of it, the database is gone.

An exception that is not known as one of a dying connection is a 500 to a client and, to a settlement, a
refusal by a healthy database. The normal run cuts here and there, the slow one at every byte.
"""

from __future__ import annotations

import asyncio
import gc
import logging
from collections import Counter
from collections.abc import Iterator

import asyncpg
import pytest

from kit.cut_proxy import ANSWERED, ASKED, FIN, RST, SILENT, Cut, CutProxy, cut_proxy
from pillarbox.kernel.postgres.bounded_pool import BoundedPool, close_within
from pillarbox.kernel.postgres.database import GONE, open_pool, transaction
from pillarbox.kernel.postgres.time_limit import TimeLimit

pytestmark = pytest.mark.sweep

ROWS = [(number, "hawser" * 20) for number in range(20)]
COARSE = 229
AT_ONCE = 20
PATIENCE = 20.0


@pytest.fixture(scope="module")
def table_url(databases) -> Iterator[str]:
    url = databases.fresh(template="template0")

    async def make() -> None:
        conn = await asyncpg.connect(url)
        await conn.execute("CREATE TABLE berths (id integer, name text)")
        await conn.close()

    asyncio.run(make())
    yield url
    databases.drop(url)


async def conversation(pool: BoundedPool) -> None:
    """All kinds of exchanges: outright, prepared, many rows, a transaction, COPY, a failure, a cursor."""
    await pool.execute("SET search_path TO public")
    await pool.fetchval("SELECT $1::integer + 1", 1)
    await pool.fetchval("SELECT $1::integer + 1", 2)
    await pool.fetch("SELECT number, repeat('x', 40) FROM generate_series(1, $1) number", 20)
    async with transaction(pool) as conn:
        await conn.copy_records_to_table("berths", records=ROWS)
        await conn.executemany("INSERT INTO berths VALUES ($1, $2)", ROWS[:3])
        async for _ in conn.cursor("SELECT name FROM berths LIMIT 60", prefetch=20):
            pass
        try:
            async with conn.transaction():
                await conn.execute("SELECT 1 / 0")
        except asyncpg.DivisionByZeroError:
            pass
        await conn.execute("DELETE FROM berths")
    await pool.fetchrow("SELECT 1")


async def befalls(proxy: CutProxy, unix: bool, cut: Cut) -> str:
    """What a conversation that is cut comes to; the pool is as good as new after it."""
    pool = await open_pool(proxy.by_unix if unix else proxy.by_tcp, limit=1)
    await pool.expire_connections()
    proxy.cut = cut
    try:
        async with asyncio.timeout(PATIENCE):
            with TimeLimit(0.2 if cut.how == SILENT else PATIENCE):
                await conversation(pool)
        outcome = "nothing"
    except GONE as gone:
        outcome = type(gone).__name__
    await recovers(pool)
    await close_within(pool, 1)
    return outcome


async def recovers(pool: BoundedPool) -> None:
    """Soon a statement is answered: the first may find that its connection is silent, or PostgreSQL that it
    has not noticed yet how many of its clients are gone."""
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                with TimeLimit(1.0):
                    assert await pool.fetchval("SELECT 1") == 1
            except GONE:
                await asyncio.sleep(0.05)
            else:
                return


async def cut_everywhere(url: str, cuts: list[tuple[str, bool]], step: int) -> Counter[str]:
    loop, complaints = asyncio.get_running_loop(), []
    loop.set_exception_handler(lambda _, context: complaints.append(context))
    logging.getLogger("asyncpg.pool").setLevel(logging.CRITICAL)
    slots = asyncio.Semaphore(AT_ONCE)
    found: Counter[str] = Counter()

    async def one(cut: Cut, unix: bool) -> None:
        async with slots, cut_proxy(url) as proxy:
            try:
                found[await befalls(proxy, unix, cut)] += 1
            except Exception as wrong:
                raise AssertionError(f"{cut}, by {'unix' if unix else 'tcp'}: {wrong!r}") from wrong

    sizes = await whole(url)
    async with asyncio.TaskGroup() as group:
        for how, unix in cuts:
            for direction in (ASKED, ANSWERED):
                for at in range(0, sizes[direction], step):
                    group.create_task(one(Cut(direction, at, how), unix))
    gc.collect()
    await asyncio.sleep(0)
    assert complaints == []
    return found


async def whole(url: str) -> dict[str, int]:
    """How many bytes each side says when nothing is cut."""
    async with cut_proxy(url) as proxy:
        pool = await open_pool(proxy.by_unix, limit=1)
        await conversation(pool)
        sizes = dict(proxy.sizes)
        await pool.close()
    return sizes


CUTS = {
    "end": [(FIN, True), (FIN, False)],
    "reset": [(RST, False)],
    "silence": [(SILENT, True)],
}


@pytest.mark.parametrize("way", CUTS)
async def test_a_conversation_that_is_cut_means_that_the_database_is_gone(table_url: str, way: str) -> None:
    found = await cut_everywhere(table_url, CUTS[way], COARSE)
    assert found.total() > 20
    assert found.total() > found["nothing"]


@pytest.mark.slow
@pytest.mark.parametrize("way", CUTS)
async def test_a_conversation_that_is_cut_at_every_byte(table_url: str, way: str) -> None:
    found = await cut_everywhere(table_url, CUTS[way], 1)
    print(f"\n{dict(found)}")
    assert found.total() > 1000
