"""Sessions of processes that froze in the middle of a statement are ended (DUR-03)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import asyncpg
import pytest

from kit.clock import ManualClock
from pillarbox.kernel.postgres.database import ENGINE, IDLE_LIMIT_MS, open_pool
from pillarbox.kernel.postgres.stuck_sessions import StuckSessions

LIMIT_SECONDS = IDLE_LIMIT_MS / 1000
LOCKED = "SELECT id FROM berths WHERE id = 1 FOR UPDATE SKIP LOCKED"


@asynccontextmanager
async def frozen(url: str, how: str, application: str = ENGINE) -> AsyncIterator[asyncpg.Connection]:
    """A session that holds a lock and says nothing any more, though PostgreSQL waits for it."""
    conn = await asyncpg.connect(
        url, server_settings={"application_name": application, "idle_in_transaction_session_timeout": "0"}
    )
    await conn.execute("BEGIN")
    await conn.execute("SELECT id FROM berths WHERE id = 1 FOR UPDATE")
    silence = asyncio.Event()

    async def rows() -> AsyncIterator[bytes]:
        await silence.wait()
        yield b"2\n"

    work = None
    if how == "prepared":
        await conn.prepare("SELECT id FROM berths WHERE id = $1")
    elif how == "copying":
        work = asyncio.create_task(conn.copy_to_table("berths", source=rows()))
    try:
        yield conn
    finally:
        if work is not None:
            work.cancel()
            with suppress(asyncio.CancelledError, asyncpg.PostgresError, OSError, AttributeError):
                await work
        conn.terminate()


@asynccontextmanager
async def harbor(url: str) -> AsyncIterator[asyncpg.Pool]:
    pool = await open_pool(url, limit=1, application=ENGINE, by_key=True)
    try:
        await pool.execute("CREATE TABLE berths (id integer PRIMARY KEY)")
        await pool.execute("INSERT INTO berths VALUES (1)")
        yield pool
    finally:
        await pool.close()


async def waits(pool: asyncpg.Pool, application: str, state: str) -> None:
    """Return when the session is where it stays."""
    async with asyncio.timeout(10):
        while not await pool.fetchval(
            "SELECT count(*) FROM pg_stat_activity WHERE application_name = $1 AND state = $2"
            " AND wait_event = 'ClientRead' AND pid <> pg_backend_pid()"
            " AND query NOT LIKE 'BEGIN%' AND query NOT LIKE '%FOR UPDATE'",
            application,
            state,
        ):
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("how", ["prepared", "copying"])
async def test_what_a_frozen_process_has_locked_is_free_again(database_url: str, how: str) -> None:
    """DUR-03: PostgreSQL's own limit on silence does not hold inside a statement."""
    clock = ManualClock()
    silence = StuckSessions(clock)
    async with harbor(database_url) as pool, frozen(database_url, how):
        await waits(pool, ENGINE, "active")
        assert await silence.look(pool) == 0
        clock.advance(LIMIT_SECONDS - 1)
        assert await silence.look(pool) == 0
        assert await pool.fetch(LOCKED) == []
        clock.advance(1)
        assert await silence.look(pool) == 1
        async with asyncio.timeout(10):
            while not await pool.fetch(LOCKED):
                await asyncio.sleep(0.01)
        assert await silence.look(pool) == 0


async def test_who_goes_on_is_not_silent(database_url: str) -> None:
    """However often it is met waiting: each time it is in another statement."""
    clock = ManualClock()
    silence = StuckSessions(clock)
    async with harbor(database_url) as pool, frozen(database_url, "prepared") as busy:
        await waits(pool, ENGINE, "active")
        for number in range(3):
            clock.advance(LIMIT_SECONDS)
            assert await silence.look(pool) == 0
            await busy.fetch("SELECT 1")
            await busy.prepare(f"SELECT {number}, id FROM berths")
        assert await busy.fetchval("SELECT 1") == 1


async def test_sessions_of_others_are_left_alone(database_url: str) -> None:
    """Somebody's psql may wait at its prompt for as long as it likes."""
    clock = ManualClock()
    silence = StuckSessions(clock)
    async with harbor(database_url) as pool, frozen(database_url, "prepared", "psql") as theirs:
        await waits(pool, "psql", "active")
        await silence.look(pool)
        clock.advance(10 * LIMIT_SECONDS)
        assert await silence.look(pool) == 0
        assert await theirs.fetchval("SELECT 1") == 1
