"""One poll for all queues of a host (docs/decisions/0172)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import asyncpg
import pytest

from kit.clock import ManualClock
from kit.process import connected, served
from pillarbox.kernel.postgres.database import open_pool
from pillarbox.kernel.process import shared_memory
from pillarbox.kernel.security.rate_limit import Windows
from pillarbox.kernel.work.queue_poll import FRESH, MOST_QUESTIONS, POLL_EVERY, QueuePoll

pytestmark = pytest.mark.sweep

IS_PAUSED = "SELECT EXISTS (SELECT FROM paused)"
IS_DUE = "SELECT min(due_at) <= $1 FROM jobs"
PAUSE = "INSERT INTO paused (team_id, destination, paused_at) VALUES (gen_random_uuid(), '', now())"
COMMITS = "SELECT sum(xact_commit)::integer FROM pg_stat_database"

TURNS = 8
SECONDS = 5.0
MOST_COMMITS = 10.0
"""A second: twice what is promised, for the machine may be slow and autovacuum at work. There were 27 when
each loop asked for itself."""


class CountedPool:
    """Counts the statements that a poll sends."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool
        self.statements = 0
        self.is_away = False

    async def fetchval(self, sql: str, *args: object, timeout: float) -> object:
        self.statements += 1
        if self.is_away:
            raise ConnectionResetError
        return await self._pool.fetchval(sql, *args, timeout=timeout)


class Host:
    """The processes of one host, each with a poll of two questions, and what woke their loops."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self.pool = CountedPool(pool)
        self.clock = ManualClock()
        self._memory = shared_memory.create()
        self.woken: list[str] = []
        self.keeps = False

    def process(self, name: str) -> QueuePoll:
        poll = QueuePoll(self.pool, self.clock, Windows(self._memory, self.clock))
        poll.add(IS_PAUSED, lambda: self.woken.append(f"{name} paused"), keeps=lambda: self.keeps)
        poll.add(IS_DUE, lambda: self.woken.append(f"{name} due"))
        return poll

    def news(self) -> list[str]:
        """What was woken since this was asked last."""
        found, self.woken = self.woken, []
        return found


@asynccontextmanager
async def host_of(url: str) -> AsyncIterator[tuple[Host, asyncpg.Pool]]:
    pool = await open_pool(url, limit=2)
    try:
        yield Host(pool), pool
    finally:
        await pool.close()


async def test_a_loop_is_woken_while_its_question_is_true(database_url: str) -> None:
    """And while it keeps what it has read: a pause that began after the question was answered, and ended
    before the next one, is read by a loop that looked for another reason."""
    async with host_of(database_url) as (host, pool):
        poll = host.process("a")
        await poll.look()
        host.news()
        for statement, keeps, expected in (
            ("SELECT 1", False, []),
            (PAUSE, False, ["a paused"]),
            ("SELECT 1", True, ["a paused"]),
            ("DELETE FROM paused", True, ["a paused"]),
            ("SELECT 1", True, ["a paused"]),
            ("SELECT 1", False, []),
        ):
            await pool.execute(statement)
            host.keeps = keeps
            host.clock.advance(POLL_EVERY)
            await poll.look()
            assert host.news() == expected


async def test_what_is_due_is_found_at_the_next_poll(database_url: str) -> None:
    """Nothing is kept of when something is due: what somebody brings forward is found as well."""
    async with host_of(database_url) as (host, pool):
        poll = host.process("a")
        await poll.look()
        host.news()
        await pool.execute(
            "INSERT INTO jobs (team_id, id, kind, subject_id, due_at, created_at) VALUES"
            " (gen_random_uuid(), gen_random_uuid(), 'toy', gen_random_uuid(), $1, $1)",
            host.clock.now(),
        )
        host.clock.advance(POLL_EVERY)
        await poll.look()
        assert host.news() == ["a due"]


async def test_one_process_asks_for_all(database_url: str) -> None:
    """What one process has found wakes the loops of the others, and the next asks where it has ended."""
    async with host_of(database_url) as (host, pool):
        first, second = host.process("a"), host.process("b")
        await pool.execute(PAUSE)
        await first.look()
        await second.look()
        assert host.pool.statements == 1
        assert host.news() == ["a paused", "b paused"]
        host.clock.advance(FRESH + 0.01)
        await second.look()
        assert host.pool.statements == 2
        assert host.news() == ["b paused"]


async def test_processes_with_other_roles_ask_for_themselves(database_url: str) -> None:
    async with host_of(database_url) as (host, _):
        other = host.process("b")
        other.add("SELECT true", lambda: host.woken.append("b more"))
        await host.process("a").look()
        host.news()
        await other.look()
        assert host.pool.statements == 2
        assert host.news() == ["b more"]


async def test_without_a_database_all_loops_are_woken(database_url: str) -> None:
    """They find out for themselves, and the other processes take it for no answer."""
    async with host_of(database_url) as (host, _):
        first, second = host.process("a"), host.process("b")
        host.pool.is_away = True
        for poll in (first, second):
            with pytest.raises(ConnectionResetError):
                await poll.look()
        assert host.news() == ["a paused", "a due", "b paused", "b due"]


async def test_more_questions_than_there_is_room_for(database_url: str) -> None:
    async with host_of(database_url) as (host, _):
        poll = host.process("a")
        for _ in range(MOST_QUESTIONS - 2):
            poll.add("SELECT false", lambda: None)
        with pytest.raises(ValueError, match="room"):
            poll.add("SELECT false", lambda: None)
        await poll.look()


async def test_an_idle_server_hardly_commits(tmp_path: Path) -> None:
    """Two processes with all roles, once what they do at their start is over."""
    commits = []
    with served(tmp_path / "data", processes="2") as server:
        async with connected(server.database_url) as conn:
            for _ in range(TURNS):
                before = await conn.fetchval(COMMITS)
                await asyncio.sleep(SECONDS)
                commits.append(await conn.fetchval(COMMITS) - before)
                if commits[-1] <= MOST_COMMITS * SECONDS:
                    break
    assert commits[-1] <= MOST_COMMITS * SECONDS, f"{commits} commits in {SECONDS} s each"
