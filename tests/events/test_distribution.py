"""What becomes of events that were accepted: who listens is told of each once, in order."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import asyncpg

from kit.listening import Heard, Listener, heard, with_listener
from kit.manual_world import clock_of, manual_world, run_jobs
from kit.world import Team, World, world
from pillarbox.events.distribution import TRIES
from pillarbox.events.partitions import JOB, partition_of
from pillarbox.events.retention import FAILED_KEPT, EventRetention
from pillarbox.kernel.process import faults
from pillarbox.kernel.work.lone_attempts import MOST_BEGUN

ADA = "ada@quay.example"
OPEN = "SELECT (SELECT count(*) FROM events) + (SELECT count(*) FROM jobs WHERE kind = $1)"


@asynccontextmanager
async def listened(database_url: str, folder: Path, listener: Listener) -> AsyncIterator[World]:
    """A Pillarbox whose work the test moves by hand, with this listener to its events."""
    async with manual_world(database_url, folder, slices=listener.slices()) as pillarbox:
        await listener.ready(pillarbox.pool)
        yield pillarbox


async def sent(team: Team, event: str, email: str = ADA, **payload: Any) -> None:
    body = {"event": event, "email": email, "payload": payload}
    assert (await team.post("/events/send", body)).status_code == 202


async def a_contact(team: Team, email: str = ADA) -> str:
    return str((await team.post("/contacts", {"email": email})).json()["id"])


async def names(team: Team) -> list[str]:
    return [one.name for one in await heard(team.world.pool, team.id)]


async def is_open(pillarbox: World) -> int:
    """Events that wait, with the jobs of their partitions."""
    return int(await pillarbox.pool.fetchval(OPEN, JOB))


async def test_events_of_a_contact_are_told_in_the_order_of_acceptance(
    database_url: str, tmp_path: Path
) -> None:
    """By its id and by its address: both wait in one partition."""
    async with listened(database_url, tmp_path, Listener()) as pillarbox:
        team = await pillarbox.team()
        contact = await a_contact(team)
        await team.post("/events", {"name": "e1", "schema": {"n": "number"}})
        for number in range(150):
            whom = {"contact_id": contact} if number % 3 else {"email": ADA.upper()}
            body = {"event": f"e{number % 5}", "payload": {"n": str(number)}, **whom}
            assert (await team.post("/events/send", body)).status_code == 202
        await run_jobs(pillarbox)
        found = await heard(pillarbox.pool, team.id)
        assert [int(json.loads(one.payload)["n"]) for one in found] == list(range(150))
        assert {type(json.loads(one.payload)["n"]) for one in found if one.name == "e1"} == {int}
        assert {(str(one.contact_id), one.address) for one in found} == {(contact, ADA)}
        assert await is_open(pillarbox) == 0


async def test_events_that_nobody_listens_to_are_removed_and_make_no_contact(
    database_url: str, tmp_path: Path
) -> None:
    listener = Listener({"heard"})
    async with listened(database_url, tmp_path, listener) as pillarbox:
        team = await pillarbox.team()
        await sent(team, "unheard")
        await sent(team, "unheard", "bo@quay.example")
        await run_jobs(pillarbox)
        assert await names(team) == []
        assert {name for asked in listener.asked for name in asked} == {"unheard"}
        assert (await team.get("/contacts")).json()["data"] == []
        assert await is_open(pillarbox) == 0


async def test_what_follows_a_heard_event_of_the_same_contact_is_told_as_well(
    database_url: str, tmp_path: Path
) -> None:
    """What the first one starts may listen to it."""
    async with listened(database_url, tmp_path, Listener({"starts"})) as pillarbox:
        team = await pillarbox.team()
        other = next(
            address
            for address in (f"u{number}@quay.example" for number in range(1000))
            if partition_of(address) == partition_of(ADA)
        )
        for event, whom in (("before", ADA), ("starts", ADA), ("other", other), ("after", ADA)):
            await sent(team, event, whom)
        await run_jobs(pillarbox)
        assert await names(team) == ["starts", "after"]
        assert await is_open(pillarbox) == 0


async def test_a_partition_does_not_wait_for_those_who_send(database_url: str, tmp_path: Path) -> None:
    """Where many send at the same time, somebody always holds its job. Its end waited until it gave up, and
    the job stayed claimed by nobody for minutes."""
    async with listened(database_url, tmp_path, Listener()) as pillarbox:
        team, pool = await pillarbox.team(), pillarbox.pool
        await sent(team, "x")
        async with pool.acquire() as conn, conn.transaction():
            await conn.execute("SELECT FROM jobs WHERE kind = $1 FOR KEY SHARE", JOB)
            async with asyncio.timeout(10):
                assert await run_jobs(pillarbox) == 1
            assert await names(team) == ["x"]
            assert (
                await pool.fetchval("SELECT count(*) FROM jobs WHERE kind = $1 AND owner IS NULL", JOB) == 1
            )
        await run_jobs(pillarbox)
        assert await is_open(pillarbox) == 0


async def test_without_a_listener_an_event_is_done(database_url: str, tmp_path: Path) -> None:
    async with manual_world(database_url, tmp_path, slices=with_listener(None)) as pillarbox:
        team = await pillarbox.team()
        await sent(team, "x")
        assert await is_open(pillarbox) == 2
        await run_jobs(pillarbox)
        assert await is_open(pillarbox) == 0


async def test_a_contact_that_was_deleted_meanwhile(database_url: str, tmp_path: Path) -> None:
    """Named by its id: the event is dropped. By its address: it is told, and there is no contact."""
    async with listened(database_url, tmp_path, Listener()) as pillarbox:
        team = await pillarbox.team()
        contact = await a_contact(team)
        assert (await team.post("/events/send", {"event": "by_id", "contact_id": contact})).status_code == 202
        await sent(team, "by_address")
        await team.call("DELETE", f"/contacts/{contact}")
        again = await a_contact(team)
        await sent(team, "afterwards")
        await run_jobs(pillarbox)
        found = await heard(pillarbox.pool, team.id)
        assert [(one.name, str(one.contact_id)) for one in found] == [
            ("by_address", again),
            ("afterwards", again),
        ]
        await sent(team, "unknown", "bo@quay.example")
        await run_jobs(pillarbox)
        assert (await heard(pillarbox.pool, team.id))[-1].contact_id is None


async def test_an_event_that_cannot_be_taken_holds_up_its_partition_for_a_while_and_then_fails(
    database_url: str, tmp_path: Path
) -> None:
    listener = Listener(refused={"broken"})
    async with listened(database_url, tmp_path, listener) as pillarbox:
        team, clock = await pillarbox.team(), clock_of(pillarbox)
        await sent(team, "first")
        await sent(team, "broken")
        await sent(team, "last")
        for _ in range(TRIES - 1):
            await run_jobs(pillarbox)
            assert await names(team) == ["first"], "what it wrote is undone"
            clock.advance(5)
        await run_jobs(pillarbox)
        assert await names(team) == ["first", "last"]
        [row] = await pillarbox.pool.fetch("SELECT name, tries, reason, failed_at FROM events")
        assert (row["name"], row["tries"], row["reason"]) == ("broken", TRIES, "internal_error")
        assert await pillarbox.pool.fetchval("SELECT count(*) FROM jobs WHERE kind = $1", JOB) == 0
        retention = EventRetention(pillarbox.pool, clock)
        clock.advance(FAILED_KEPT.total_seconds() - 60)
        assert await retention.collect() == "0 events"
        assert await is_open(pillarbox) == 1
        clock.advance(61)
        assert await retention.collect() == "1 events"
        assert await is_open(pillarbox) == 0


async def test_a_listener_that_fails_once_is_told_again(database_url: str, tmp_path: Path) -> None:
    listener = Listener(refused={"x"})
    async with listened(database_url, tmp_path, listener) as pillarbox:
        team = await pillarbox.team()
        await sent(team, "x")
        await run_jobs(pillarbox)
        assert await names(team) == []
        listener.refused.clear()
        clock_of(pillarbox).advance(5)
        await run_jobs(pillarbox)
        assert await names(team) == ["x"]


async def test_a_failure_behind_what_was_written_undoes_it(database_url: str, tmp_path: Path) -> None:
    """The point `events.told`: the event is told again, once."""
    async with listened(database_url, tmp_path, Listener()) as pillarbox:
        team = await pillarbox.team()
        await sent(team, "x")
        await sent(team, "y")
        with faults.armed("events.told=raise@2"):
            await run_jobs(pillarbox)
            assert await names(team) == ["x"]
            clock_of(pillarbox).advance(5)
            await run_jobs(pillarbox)
        assert await names(team) == ["x", "y"]
        assert await is_open(pillarbox) == 0


async def test_processes_that_die_over_an_event_count_as_its_tries(database_url: str, tmp_path: Path) -> None:
    """Three of them, in each of which the event was the only one that was told; its partition goes on."""
    async with listened(database_url, tmp_path, Listener()) as pillarbox:
        team = await pillarbox.team()
        await sent(team, "deadly")
        await sent(team, "next")
        died = "UPDATE jobs SET attempt = attempt + 1, begun = $2 WHERE kind = $1"
        await pillarbox.pool.execute(died, JOB, MOST_BEGUN)
        while await run_jobs(pillarbox):
            pass
        assert await names(team) == ["next"]
        [row] = await pillarbox.pool.fetch("SELECT name, reason FROM events")
        assert (row["name"], row["reason"]) == ("deadly", "process_died")


async def test_an_event_that_comes_while_the_job_of_its_partition_ends_is_not_left_there(
    database_url: str, tmp_path: Path
) -> None:
    async with listened(database_url, tmp_path, Listener()) as pillarbox:
        team = await pillarbox.team()
        await sent(team, "first")
        ending = await asyncpg.connect(database_url)
        try:
            async with ending.transaction():
                job = await ending.fetchval("SELECT id FROM jobs WHERE kind = $1 FOR UPDATE", JOB)
                await ending.execute("DELETE FROM events")
                sending = asyncio.create_task(sent(team, "second"))
                await blocked(pillarbox, ending)
                assert not sending.done()
                await ending.execute("DELETE FROM jobs WHERE id = $1", job)
            await sending
        finally:
            await ending.close()
        assert await is_open(pillarbox) == 2
        assert await pillarbox.pool.fetchval("SELECT id FROM jobs WHERE kind = $1", JOB) != job
        await run_jobs(pillarbox)
        assert await names(team) == ["second"]


async def blocked(pillarbox: World, holder: asyncpg.Connection) -> None:
    """Wait until somebody waits for what this connection holds."""
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE $1 = ANY (pg_blocking_pids(pid))"
    async with asyncio.timeout(20):
        while not await pillarbox.pool.fetchval(waiting, holder.get_server_pid()):
            await asyncio.sleep(0.01)


async def test_a_job_that_ends_sees_the_event_that_was_stored_before_it(
    database_url: str, tmp_path: Path
) -> None:
    """An event that is written and not committed makes the end of the job wait."""
    async with listened(database_url, tmp_path, Listener()) as pillarbox:
        team = await pillarbox.team()
        await sent(team, "first")
        with faults.armed("events.before_commit=delay:0.2"):
            sending = asyncio.create_task(sent(team, "second"))
            waiting = "SELECT count(*) FROM pg_stat_activity WHERE state = 'idle in transaction'"
            async with asyncio.timeout(20):
                while not await pillarbox.pool.fetchval(waiting):
                    await asyncio.sleep(0.005)
            while await is_open(pillarbox):
                await run_jobs(pillarbox)
                if sending.done() and not await is_open(pillarbox):
                    break
            await sending
        while await run_jobs(pillarbox):
            pass
        assert await names(team) == ["first", "second"]
        assert await is_open(pillarbox) == 0


async def test_many_senders_at_once(database_url: str, tmp_path: Path) -> None:
    """Two teams, forty contacts, partitions in parallel: each event once, those of a contact in order."""
    listener = Listener()
    async with world(database_url, tmp_path, slices=listener.slices()) as pillarbox:
        await listener.ready(pillarbox.pool)
        teams = [await pillarbox.team(), await pillarbox.team("Quay")]

        async def sends(team: Team, whom: int) -> None:
            for number in range(8):
                await sent(team, "x", f"u{whom}@quay.example", n=number)

        await asyncio.gather(*[sends(team, whom) for team in teams for whom in range(20)])
        async with asyncio.timeout(60):
            while await is_open(pillarbox):
                await asyncio.sleep(0.02)
        for team in teams:
            told: dict[str, list[int]] = {}
            for one in await heard(pillarbox.pool, team.id):
                told.setdefault(one.address, []).append(json.loads(one.payload)["n"])
            assert told == {f"u{whom}@quay.example": list(range(8)) for whom in range(20)}


async def test_a_burst_of_one_team_does_not_delay_another(database_url: str, tmp_path: Path) -> None:
    """The other team's event is told long before the end of the burst."""
    listener = Listener()
    async with world(database_url, tmp_path, slices=listener.slices()) as pillarbox:
        await listener.ready(pillarbox.pool)
        busy, other = await pillarbox.team(), await pillarbox.team("Quay")
        for start in range(0, 1500, 100):
            events = [{"event": "x", "email": f"u{start + n}@quay.example"} for n in range(100)]
            assert (await busy.post("/events/send", events)).status_code == 202
        await sent(other, "y")
        async with asyncio.timeout(30):
            while not await heard(pillarbox.pool, other.id):
                await asyncio.sleep(0.01)
        left = await pillarbox.pool.fetchval("SELECT count(*) FROM events WHERE team_id = $1", busy.id)
        assert left > 0
        async with asyncio.timeout(120):
            while await is_open(pillarbox):
                await asyncio.sleep(0.05)
        found: list[Heard] = await heard(pillarbox.pool, busy.id)
        assert len({one.event_id for one in found}) == len(found) == 1500
