"""Limits of background jobs: a kind with thousands of due jobs keeps nobody else waiting."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import asyncpg

from kit.clock import ManualClock
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.postgres.database import Connection, open_pool
from pillarbox.kernel.work.jobs import (
    DecidedAtSettle,
    Handler,
    Job,
    JobFinished,
    JobLimit,
    JobPostponed,
    Jobs,
)

TEAM = UUID(int=1)
MASS = JobLimit(("mass",), running=8, batch=4, pause=0.01)


@asynccontextmanager
async def pool_of(url: str) -> AsyncIterator[asyncpg.Pool]:
    pool = await open_pool(url, limit=5)
    try:
        yield pool
    finally:
        await pool.close()


async def add(pool: asyncpg.Pool, kind: str, due: datetime) -> UUID:
    subject = Ids(ManualClock()).new()
    await pool.execute(
        """
        INSERT INTO jobs (team_id, id, kind, subject_id, due_at, created_at) VALUES ($1, $2, $3, $4, $5, $5)
        """,
        TEAM,
        Ids(ManualClock()).new(),
        kind,
        subject,
        due,
    )
    return subject


class Recorder:
    """Handlers that note what they are given and wait until they may go on."""

    def __init__(self) -> None:
        self.seen: list[UUID] = []
        self.go_on = asyncio.Event()

    async def run(self, job: Job) -> JobFinished:
        self.seen.append(job.subject_id)
        await self.go_on.wait()
        return JobFinished()

    @property
    def handlers(self) -> dict[str, Handler]:
        return {"mass": self.run, "rare": self.run}


async def test_many_jobs_of_a_kind_leave_slots_for_other_kinds(database_url: str) -> None:
    clock, recorder = ManualClock(), Recorder()
    async with pool_of(database_url) as pool:
        for _ in range(30):
            await add(pool, "mass", clock.now() - timedelta(hours=1))
        rare = await add(pool, "rare", clock.now())
        jobs = Jobs(pool, clock, UUID(int=5), recorder.handlers, limits=(MASS,))
        assert await jobs.look() == 1 + MASS.batch
        assert await jobs.look() == MASS.batch
        assert await jobs.look() == 0, "as many run as may"
        await asyncio.sleep(0)
        assert rare in recorder.seen
        recorder.go_on.set()
        await jobs.idle()
        assert await pool.fetchval("SELECT count(*) FROM jobs") == 30 - MASS.running


async def test_what_was_asked_for_just_now_does_not_stand_behind_the_crowd(database_url: str) -> None:
    clock, recorder = ManualClock(), Recorder()
    async with pool_of(database_url) as pool:
        for number in range(30):
            await add(pool, "mass", clock.now() - timedelta(hours=2) + timedelta(minutes=number))
        latest = await add(pool, "mass", clock.now())
        jobs = Jobs(pool, clock, UUID(int=5), recorder.handlers, limits=(MASS,))
        assert await jobs.look() == MASS.batch
        assert await jobs.look() == MASS.batch
        await asyncio.sleep(0)
        assert latest in recorder.seen
        recorder.go_on.set()
        await jobs.idle()


async def test_many_jobs_are_done_without_being_woken(database_url: str) -> None:
    clock, recorder = ManualClock(), Recorder()
    recorder.go_on.set()
    async with pool_of(database_url) as pool:
        for _ in range(40):
            await add(pool, "mass", clock.now())
        jobs = Jobs(pool, clock, UUID(int=5), recorder.handlers, limits=(MASS,))
        await jobs.start()
        async with asyncio.timeout(20):
            while await pool.fetchval("SELECT count(*) FROM jobs"):
                await asyncio.sleep(0.01)
        await jobs.stop(1)
        assert len(set(recorder.seen)) == len(recorder.seen) == 40


async def test_what_is_decided_in_the_end_counts_only_for_this_claim(database_url: str) -> None:
    """Asked for anew while it runs: the effects of the old claim are undone with its outcome."""
    clock = ManualClock()
    started, go_on = asyncio.Event(), asyncio.Event()

    async def decide(conn: Connection) -> JobPostponed:
        await conn.execute(
            "INSERT INTO purges (team_id, before, first_id) VALUES ($1, $2, $1) ON CONFLICT DO NOTHING",
            TEAM,
            clock.now(),
        )
        return JobPostponed(clock.now() + timedelta(days=1), "tomorrow")

    async def run(_: Job) -> DecidedAtSettle:
        started.set()
        await go_on.wait()
        return DecidedAtSettle(decide)

    async with pool_of(database_url) as pool:
        await add(pool, "mass", clock.now())
        jobs = Jobs(pool, clock, UUID(int=5), {"mass": run})
        assert await jobs.look() == 1
        await started.wait()
        await pool.execute(
            "UPDATE jobs SET owner = NULL, leased_until = NULL, attempt = attempt + 1, tries = attempt + 1"
        )
        go_on.set()
        await jobs.idle()
        assert await pool.fetchval("SELECT count(*) FROM purges") == 0
        assert await pool.fetchval("SELECT due_at FROM jobs") == clock.now()
        assert await jobs.look() == 1
        await jobs.idle()
        assert await pool.fetchval("SELECT count(*) FROM purges") == 1
        row = await pool.fetchrow("SELECT due_at, reason, owner, attempt, tries FROM jobs")
        assert tuple(row) == (clock.now() + timedelta(days=1), "tomorrow", None, 3, 3)


class Counting:
    """A pool that counts the statements which it is given."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self.pool = pool
        self.statements: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.pool, name)

    async def fetch(self, statement: str, *args: Any) -> Any:
        self.statements.append(statement)
        return await self.pool.fetch(statement, *args)


async def test_one_statement_asks_for_all_limits_where_nothing_is_due(database_url: str) -> None:
    recorder, clock = Recorder(), ManualClock()
    limits = [JobLimit((f"kind{n}",), running=2, batch=2, pause=0.1) for n in range(10)]
    handlers: dict[str, Handler] = {limit.kinds[0]: recorder.run for limit in limits}
    async with pool_of(database_url) as pool:
        counting = Counting(pool)
        jobs = Jobs(counting, clock, UUID(int=7), handlers, limits)  # type: ignore[arg-type]
        await jobs._look_where_due(is_woken=True)
        assert len(counting.statements) == 1
        subject = await add(pool, "kind3", clock.now())
        await jobs._look_where_due(is_woken=True)
        assert len(counting.statements) == 3
        assert [job.subject_id for job in jobs._tasks.values()] == [subject]
        recorder.go_on.set()
        await jobs.stop(10)
