"""Jobs that wait for servers which a team has chosen keep no other team waiting."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import timedelta
from pathlib import Path
from uuid import UUID, uuid4

import asyncpg
from hypothesis import given, settings
from hypothesis import strategies as st

from kit.clock import ManualClock
from kit.http_outside import answer, serving
from kit.world import World, mail, world
from pillarbox.emails import accept
from pillarbox.emails.fetching import JOB_LIMIT as FETCHING
from pillarbox.kernel.postgres.database import open_pool
from pillarbox.kernel.work.fair_turns import DueJob, TakenSlot, Turns, chosen, overdue
from pillarbox.kernel.work.jobs import Job, JobFinished, JobLimit, Jobs

SLOTS = 16
TURNS = Turns(slot_timeout=10.0, gap=timedelta(seconds=30), tries=2)
JOB_LIMIT = JobLimit(("slow",), running=4, batch=4, pause=0.01, turns=TURNS)
TEAMS = [UUID(int=number) for number in range(1, 9)]


def due(team: int, site: str = "", count: int = 1) -> list[DueJob]:
    return [DueJob(TEAMS[team], uuid4(), site) for _ in range(count)]


def held(team: int, site: str = "", count: int = 1, seconds: float = 0.0, tries: int = 0) -> list[TakenSlot]:
    return [
        TakenSlot(team_id=TEAMS[team], site=site, job=uuid4(), seconds=seconds, tries=tries)
        for _ in range(count)
    ]


def test_one_team_and_one_host_have_half_of_the_slots() -> None:
    assert len(chosen(due(0, count=400), [], SLOTS, SLOTS)) == SLOTS // 2
    many = [candidate for team in range(8) for candidate in due(team, "slow.example", 50)]
    assert len(chosen(many, [], SLOTS, SLOTS)) == SLOTS // 2
    both = chosen(due(0, "slow.example", 50) + due(0, "fast.example", 50), [], SLOTS, SLOTS)
    assert Counter(candidate.site for candidate in both) == {"slow.example": 4, "fast.example": 4}


@given(st.lists(st.tuples(st.integers(0, 7), st.sampled_from(["", "a", "b"])), max_size=30), st.data())
@settings(max_examples=40, deadline=None)
def test_who_has_nothing_is_served_first(waiting: list[tuple[int, str]], data: st.DataObject) -> None:
    taken = data.draw(st.lists(st.tuples(st.integers(0, 7), st.sampled_from(["", "a", "b"])), max_size=SLOTS))
    slots = [slot for team, site in taken for slot in held(team, site)]
    candidates = [candidate for team, site in waiting for candidate in due(team, site)]
    found = chosen(candidates, slots, SLOTS, SLOTS)
    assert len(found) == len(set(found)) <= SLOTS - len(slots)
    having = {slot.team_id for slot in slots}
    new = {candidate.team_id for candidate in candidates} - having
    served = {candidate.team_id for candidate in found}
    assert len(new & served) >= min(len(new), SLOTS - len(slots))


def test_a_slot_is_given_back_where_none_is_free() -> None:
    full = held(0, count=10, seconds=20) + held(1, count=6, seconds=30)
    slot = overdue(due(2), full, TURNS)
    assert slot is not None
    assert slot.team_id == TEAMS[0], "by the team that has most"
    assert overdue(due(0), full, TURNS) is None, "not for the team itself"
    assert overdue([], full, TURNS) is None
    assert overdue(due(2), held(0, count=16, seconds=9), TURNS) is None, "not before its time"
    assert overdue(due(2), held(0, count=16, seconds=99, tries=2), TURNS) is None, "not on the last try"


async def test_a_team_whose_jobs_hang_keeps_no_other_waiting(database_url: str) -> None:
    clock, hang, begun = ManualClock(), asyncio.Event(), list[UUID]()

    async def run(job: Job) -> JobFinished:
        begun.append(job.team_id)
        await hang.wait()
        return JobFinished()

    pool = await open_pool(database_url, limit=3)
    try:
        for team, count in ((0, 100), (1, 1), (2, 1)):
            await add(pool, clock, TEAMS[team], count)
        jobs = Jobs(pool, clock, UUID(int=5), {"slow": run}, limits=(JOB_LIMIT,))
        assert await jobs.look() == 3
        await asyncio.sleep(0)
        assert sorted(begun) == TEAMS[:3]
        await jobs.look()
        await add(pool, clock, TEAMS[3])
        await jobs.look()
        await asyncio.sleep(0)
        assert begun.count(TEAMS[0]) == 1, "one more slot is kept free than anybody has"
        assert TEAMS[3] in begun
        hang.set()
        await jobs.idle()
    finally:
        await pool.close()


async def test_what_is_cut_off_frees_its_slot_and_is_tried_again(database_url: str) -> None:
    clock, begun = ManualClock(), list[UUID]()

    async def run(job: Job) -> JobFinished:
        begun.append(job.team_id)
        await asyncio.Event().wait()
        return JobFinished()

    pool = await open_pool(database_url, limit=3)
    try:
        jobs = Jobs(pool, clock, UUID(int=5), {"slow": run}, limits=(JOB_LIMIT,))
        for team, count in ((0, 2), (1, 1), (2, 1), (3, 1)):
            await add(pool, clock, TEAMS[team], count)
            await jobs.look()
        await asyncio.sleep(0)
        assert begun == [TEAMS[0], TEAMS[0], TEAMS[1], TEAMS[2]], "all slots"
        assert await jobs.look() == 0
        clock.advance(TURNS.slot_timeout)
        assert await jobs.look() == 0, "one is cut off"
        # Its row is free before its task has ended: only then has it given back the slot.
        while (started := await jobs.look()) == 0:
            await asyncio.sleep(0.005)
        assert started == 1
        await asyncio.sleep(0)
        assert begun[-1] == TEAMS[3]
        row = await pool.fetchrow("SELECT team_id, tries, reason, due_at FROM jobs WHERE owner IS NULL")
        assert tuple(row) == (TEAMS[0], 1, "cut_off", clock.now() + TURNS.gap)
        await jobs.stop(0)
    finally:
        await pool.close()


async def test_mail_with_slow_files_delays_no_other_team(database_url: str, tmp_path: Path) -> None:
    end = asyncio.Event()

    async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await end.wait()

    async with (
        serving(hang) as slow,
        serving(answer()) as quick,
        world(database_url, tmp_path, allow_private="127.0.0.0/8") as here,
    ):
        busy, other = await here.team("Harbor"), await here.team("Quay")
        await busy.domain()
        await other.domain("quay.example")
        for _ in range(20):
            await busy.send(attachments=[{"path": f"http://127.0.0.1:{slow.port}/f"}])
        email = await other.send(
            from_="a@quay.example", attachments=[{"path": f"http://127.0.0.1:{quick.port}/f"}]
        )
        assert (await other.settled(email))["last_event"] == "delivered"
        assert 0 < slow.connections <= FETCHING.running // 2
        end.set()


async def test_the_files_of_a_team_that_wait_are_bounded(pillarbox: World) -> None:
    team = await pillarbox.team()
    await team.domain()
    email = mail(attachments=[{"path": "http://files.example/f"}])
    await add(pillarbox.pool, pillarbox.clock, team.id, accept.MOST_FETCHES, kind="email.attachments")
    refused = await team.post("/emails", email)
    assert (refused.status_code, refused.json()["name"]) == (429, "rate_limit_exceeded")
    assert int(refused.headers["retry-after"]) > 0
    await team.send()
    await pillarbox.pool.execute("DELETE FROM jobs WHERE id IN (SELECT id FROM jobs LIMIT 1)")
    assert (await team.post("/emails", email)).status_code == 200


async def add(pool: asyncpg.Pool, clock: object, team: UUID, count: int = 1, kind: str = "slow") -> None:
    await pool.execute(
        """
        INSERT INTO jobs (team_id, id, kind, subject_id, due_at, created_at)
        SELECT $1, gen_random_uuid(), $4, gen_random_uuid(), $2, $2 FROM generate_series(1, $3::integer)
        """,
        team,
        clock.now(),  # type: ignore[attr-defined]
        count,
        kind,
    )
