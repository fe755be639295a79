"""Leases of background jobs, whatever the wall clocks say (DUR-09)."""

from __future__ import annotations

import asyncio
import os
import subprocess
from datetime import timedelta
from uuid import UUID

import asyncpg
import pytest

from kit.clock import START, ManualClock
from kit.manual_world import clock_of
from kit.world import World
from pillarbox.kernel.process import process_table
from pillarbox.kernel.work.claim_queries import JOBS, LEASE, RENEW_EVERY
from pillarbox.kernel.work.fair_turns import Turns
from pillarbox.kernel.work.jobs import Job, JobFinished, JobLimit, Jobs
from pillarbox.kernel.work.lease_watch import HeldLeases, LeaseWatch, LostLeases
from pillarbox.kernel.work.leases import RECOVER_EVERY, forget

KIND = "test.job"
SECONDS = LEASE.total_seconds()
HOLDER, OTHER, ELSEWHERE = UUID(int=1), UUID(int=2), UUID(int=3)

ADD = """
    INSERT INTO jobs (team_id, id, kind, subject_id, due_at, created_at)
    VALUES (gen_random_uuid(), gen_random_uuid(), $1, gen_random_uuid(), $2, $2)
"""
TAKE = """
    UPDATE jobs SET owner = $1, leased_until = $2, attempt = 1
     WHERE id = (SELECT id FROM jobs WHERE kind = 'test.job' AND owner IS NULL LIMIT 1)
"""
REGISTER = """
    INSERT INTO processes (id, host, pid, pid_start, roles, started_at, seen_at)
    VALUES ($1, $2, $3, $4, 'jobs', $5, $5)
"""
RENEWED = "UPDATE jobs SET leased_until = $1 WHERE owner = $2"


def jobs(pool: asyncpg.Pool, clock: ManualClock, owner: UUID, ended: list[Job]) -> Jobs:
    async def work(job: Job) -> JobFinished:
        ended.append(job)
        return JobFinished()

    return Jobs(pool, clock, owner, {KIND: work})


@pytest.mark.parametrize("ahead", [timedelta(hours=-1), timedelta(), timedelta(hours=1)])
async def test_a_job_stays_with_the_living_and_leaves_the_dead(pillarbox: World, ahead: timedelta) -> None:
    """The other process's clock is an hour behind, right, or an hour ahead of the holder's."""
    pool, clock, done = pillarbox.pool, clock_of(pillarbox), list[Job]()
    await pool.execute(ADD, KIND, clock.now())
    taken = asyncio.Event()

    async def hold(_: Job) -> JobFinished:
        taken.set()
        await asyncio.Event().wait()
        return JobFinished()

    holder, other = Jobs(pool, clock, HOLDER, {KIND: hold}), jobs(pool, clock, OTHER, done)
    assert await holder.look() == 1
    await taken.wait()
    for _ in range(6):
        await pool.execute(RENEWED, clock.now() - ahead + LEASE, HOLDER)
        for _ in range(4):
            assert await other.look() == 0
            clock.advance(RENEW_EVERY / 4)
    clock.advance(LEASE - timedelta(seconds=RENEW_EVERY / 2))
    await other.look()
    clock.advance(RENEW_EVERY)
    await other.look()
    await other.idle()
    assert [(job.attempt, job.tries) for job in done] == [(2, 0)], "a death, and counted as one"
    await holder.stop(0)


async def test_a_renewal_after_a_step_back_of_the_clock_is_seen(pillarbox: World) -> None:
    """A lease that stands still is taken for that of a dead process."""
    pool, clock = pillarbox.pool, clock_of(pillarbox)
    await pool.execute(ADD, KIND, clock.now())
    taken = asyncio.Event()

    async def hold(_: Job) -> JobFinished:
        taken.set()
        await asyncio.Event().wait()
        return JobFinished()

    holder = Jobs(pool, clock, HOLDER, {KIND: hold})
    await holder.start()
    await taken.wait()
    clock.jump(-3600)
    await clock.slept(RENEW_EVERY)
    clock.advance(RENEW_EVERY)
    await clock.slept(RENEW_EVERY)
    assert await pool.fetchval("SELECT leased_until FROM jobs WHERE kind = $1", KIND) == clock.now() + LEASE
    await holder.stop(0)


async def test_who_stood_still_while_it_claimed_begins_nothing(pillarbox: World) -> None:
    """The claim is committed, and the lease over when its answer is read."""
    pool, clock, done = pillarbox.pool, clock_of(pillarbox), list[Job]()
    frozen, later = jobs(pool, clock, HOLDER, done), jobs(pool, clock, OTHER, done)
    assert await frozen.look() == 0
    await pool.execute(ADD, KIND, clock.now())
    await pool.execute(ADD, KIND, clock.now())
    async with pool.acquire() as conn, conn.transaction():
        await conn.execute("LOCK TABLE jobs IN ACCESS EXCLUSIVE MODE")
        looking = asyncio.create_task(frozen.look())
        waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted"
        while not await conn.fetchval(waiting):
            await asyncio.sleep(0.01)
        clock.advance(LEASE)
    assert await looking == 0
    assert not done
    assert await later.look() == 2
    await later.idle()
    assert [(job.attempt, job.tries) for job in done] == [(2, 1)] * 2


async def test_the_jobs_of_a_dead_process_of_this_host_are_free_at_once(pillarbox: World) -> None:
    """One that lives keeps its job, and so does one of another host whatever runs here under its number."""
    pool, clock, done = pillarbox.pool, clock_of(pillarbox), list[Job]()
    process = subprocess.Popen(["/bin/sleep", "600"])
    start = process_table.started(process.pid)
    for owner, host in ((HOLDER, process_table.boot_id()), (ELSEWHERE, "another host")):
        await pool.execute(REGISTER, owner, host, process.pid, start, clock.now())
        await pool.execute(ADD, KIND, clock.now())
        await pool.execute(TAKE, owner, clock.now() + LEASE)
    other = jobs(pool, clock, OTHER, done)
    assert await other.look() == 0
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert await other.look() == 0, "a moment later nobody looks again"
    clock.advance(RECOVER_EVERY)
    assert await other.look() == 1
    await other.idle()
    assert [(job.attempt, job.tries) for job in done] == [(2, 0)], "a death, and counted as one"
    assert await pool.fetchval("SELECT owner FROM jobs WHERE kind = $1", KIND) == ELSEWHERE
    process.wait()


async def test_a_job_of_the_dead_that_is_locked_holds_nobody_up(pillarbox: World) -> None:
    pool, clock, done = pillarbox.pool, clock_of(pillarbox), list[Job]()
    await pool.execute(REGISTER, HOLDER, process_table.boot_id(), 2**22 + 1, 1, clock.now())
    for _ in range(2):
        await pool.execute(ADD, KIND, clock.now())
    await pool.execute(
        "UPDATE jobs SET owner = $1, leased_until = $2, attempt = 1 WHERE kind = $3",
        HOLDER,
        clock.now() + LEASE,
        KIND,
    )
    other = jobs(pool, clock, OTHER, done)
    async with pool.acquire() as conn, conn.transaction():
        await conn.execute("SELECT FROM jobs WHERE kind = $1 ORDER BY id LIMIT 1 FOR UPDATE", KIND)
        async with asyncio.timeout(10):
            assert await other.look() == 1
            await other.idle()
    clock.advance(RECOVER_EVERY)
    assert await other.look() == 1
    await other.idle()
    assert len(done) == 2


async def test_a_job_that_is_locked_does_not_keep_others_from_being_renewed(pillarbox: World) -> None:
    pool, now = pillarbox.pool, clock_of(pillarbox).now()
    for _ in range(2):
        await pool.execute(ADD, KIND, now)
    await pool.execute("UPDATE jobs SET owner = $1, leased_until = $2 WHERE kind = $3", HOLDER, now, KIND)
    rows = await pool.fetch("SELECT team_id, id FROM jobs WHERE kind = $1 ORDER BY id", KIND)
    keys, until = ([row["team_id"] for row in rows], [row["id"] for row in rows]), now + LEASE
    async with pool.acquire() as conn, conn.transaction():
        await conn.execute("SELECT FROM jobs WHERE id = $1 FOR UPDATE", keys[1][0])
        async with asyncio.timeout(10):
            await pool.execute(JOBS.renew, *keys, HOLDER, until, until + LEASE / 2)
    found = await pool.fetch("SELECT leased_until FROM jobs WHERE kind = $1 ORDER BY id", KIND)
    assert [row["leased_until"] for row in found] == [now, until]


IN_TURN = JobLimit(kinds=(KIND,), running=5, batch=5, pause=1.0, turns=Turns(10.0, timedelta(seconds=1), 1))
LOOK_AT = "SELECT FROM jobs WHERE kind = $1 FOR KEY SHARE"


@pytest.mark.parametrize("limits", [(), (IN_TURN,)])
async def test_a_job_that_somebody_holds_against_its_end_is_free_and_can_be_claimed(
    pillarbox: World, limits: tuple[JobLimit, ...]
) -> None:
    """Every event that is sent holds the job of its partition until its commit: while many are sent, somebody
    always does, and the events would be told when they stop."""
    pool, clock, done = pillarbox.pool, clock_of(pillarbox), list[Job]()

    async def work(job: Job) -> JobFinished:
        done.append(job)
        return JobFinished()

    await pool.execute(REGISTER, HOLDER, process_table.boot_id(), 2**22 + 1, 1, clock.now())
    for _ in range(2):
        await pool.execute(ADD, KIND, clock.now())
    await pool.execute(TAKE, HOLDER, clock.now() + LEASE)
    other = Jobs(pool, clock, OTHER, {KIND: work}, limits)
    async with pool.acquire() as conn, conn.transaction():
        await conn.execute(LOOK_AT, KIND)
        assert await other.look() == 2
    await other.idle()
    assert sorted((job.attempt, job.tries) for job in done) == [(1, 0), (2, 0)]


async def test_a_job_that_somebody_holds_against_its_end_is_renewed(pillarbox: World) -> None:
    pool, now = pillarbox.pool, clock_of(pillarbox).now()
    await pool.execute(ADD, KIND, now)
    await pool.execute(TAKE, HOLDER, now)
    [[team_id, job_id]] = await pool.fetch("SELECT team_id, id FROM jobs WHERE kind = $1", KIND)
    async with pool.acquire() as conn, conn.transaction():
        await conn.execute(LOOK_AT, KIND)
        until = now + LEASE
        await pool.execute(JOBS.renew, [team_id], [job_id], HOLDER, until, until + LEASE / 2)
    assert await pool.fetchval("SELECT leased_until FROM jobs WHERE kind = $1", KIND) == until


async def test_who_runs_jobs_is_in_the_register(pillarbox: World) -> None:
    """Also where it does nothing else. A dead one stays there until its jobs are free."""
    pool, clock, done = pillarbox.pool, clock_of(pillarbox), list[Job]()
    await jobs(pool, clock, OTHER, done).look()
    row = await pool.fetchrow("SELECT pid, pid_start FROM processes WHERE id = $1", OTHER)
    assert tuple(row) == (os.getpid(), process_table.started(os.getpid()))
    await pool.execute(ADD, KIND, clock.now())
    await pool.execute(TAKE, OTHER, clock.now() + LEASE)
    known = "SELECT count(*) FROM processes WHERE id = $1"
    await forget(pool, OTHER)
    assert await pool.fetchval(known, OTHER) == 1
    await pool.execute("DELETE FROM jobs WHERE owner = $1", OTHER)
    await forget(pool, OTHER)
    assert await pool.fetchval(known, OTHER) == 0


def at(seconds: float) -> timedelta:
    return timedelta(seconds=seconds)


def test_the_rule() -> None:
    """What stands still is watched from its first sight on; what came later is not lost with it."""
    watch = LeaseWatch(60, 20)
    first, last, later = (START + at(seconds) for seconds in (50, 60, 80))
    assert watch.lost([HeldLeases(HOLDER, first, last)], START, 0) == []
    assert watch.lost([HeldLeases(HOLDER, first, later)], START + at(51), 24) == []
    assert watch.lost([HeldLeases(HOLDER, first, later)], START, 59) == []
    assert watch.lost([HeldLeases(HOLDER, first, later)], START + at(51), 59) == [LostLeases(HOLDER, last)]
    assert watch.lost([HeldLeases(HOLDER, first, later)], START, 60) == [LostLeases(HOLDER, last)]
    assert watch.lost([HeldLeases(HOLDER, later, later)], START + at(90), 61) == [], "it moved"
    assert watch.lost([HeldLeases(HOLDER, later, later)], START + at(90), 86) == [LostLeases(HOLDER, later)]
    assert watch.lost([], START + at(90), 87) == []
    assert watch.lost([HeldLeases(HOLDER, later, later)], START + at(90), 1000) == [], "seen anew"
