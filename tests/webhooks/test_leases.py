"""Leases: a dead or frozen process loses its deliveries; no two work on one endpoint (architecture 2.5)."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from uuid import UUID, uuid4

import pytest

from kit.clock import ManualClock
from kit.receiver import WEBHOOKS, Arrival, Receiver, hangs, receiver, status
from kit.webhooks import Hook, hook, publish
from kit.world import World, world
from pillarbox.kernel.process import process_table
from pillarbox.webhooks import wire
from pillarbox.webhooks.dispatch.deliveries import Delivery
from pillarbox.webhooks.dispatch.engine import WebhookDispatcher
from pillarbox.webhooks.dispatch.queries import LEASE, RENEW_EVERY

ENROLL_ELSEWHERE = """
    INSERT INTO processes (id, host, pid, pid_start, roles, started_at, seen_at)
    VALUES ($1, 'elsewhere', 1, 1, 'webhooks', $2, $2)
"""

LEASED = """
    UPDATE webhook_deliveries
       SET owner = $2, leased_until = $3, attempt = attempt + 1
     WHERE team_id = $1
"""


def dispatcher(pillarbox: World) -> WebhookDispatcher:
    found = pillarbox.app.need(WebhookDispatcher)
    assert found is not None
    return found


async def turn(pillarbox: World) -> int:
    clock = pillarbox.clock
    if isinstance(clock, ManualClock):
        clock.advance(0.001)
    met = await dispatcher(pillarbox).look()
    await dispatcher(pillarbox).idle()
    return met


@asynccontextmanager
async def another(url: str, folder: Path, clock: ManualClock | None = None) -> AsyncIterator[World]:
    """One more process on the same database, driven by hand."""
    async with world(url, folder, clock=clock, started=False, **WEBHOOKS) as pillarbox:
        process = pillarbox.app.kit.runtime.process_id
        await process_table.record_process(pillarbox.pool, process, "webhooks", pillarbox.clock.now())
        try:
            yield pillarbox
        finally:
            await dispatcher(pillarbox).stop(0)


async def leased_to(on: Hook, owner: UUID, seconds: float) -> None:
    await on.team.db.run(LEASED, owner, on.team.world.clock.now() + timedelta(seconds=seconds))


async def test_a_process_that_is_not_registered_keeps_its_lease(database_url: str, tmp_path: Path) -> None:
    """A clock that is a day ahead may have removed its row."""
    clock = ManualClock()
    async with receiver() as at, another(database_url, tmp_path, clock) as pillarbox:
        on = await hook(await pillarbox.team(), endpoint=at.url)
        await publish(on.team)
        await leased_to(on, uuid4(), LEASE.total_seconds())
        await turn(pillarbox)
        assert not at.arrivals
        clock.advance(LEASE)
        await turn(pillarbox)
        (event,) = await on.events()
        assert [arrival.event for arrival in at.arrivals] == [event["id"]]
        assert event["status"] == "success"


async def test_a_silent_process_elsewhere_loses_its_deliveries_with_its_lease(
    database_url: str, tmp_path: Path
) -> None:
    clock, elsewhere = ManualClock(), uuid4()
    async with receiver() as at, another(database_url, tmp_path, clock) as pillarbox:
        on = await hook(await pillarbox.team(), endpoint=at.url)
        await pillarbox.pool.execute(ENROLL_ELSEWHERE, elsewhere, clock.now())
        await publish(on.team)
        await leased_to(on, elsewhere, LEASE.total_seconds())
        await publish(on.team)
        await turn(pillarbox)
        clock.advance(LEASE.total_seconds() - 2)
        await turn(pillarbox)
        assert not at.arrivals, "while another process has any of it, all of the webhook is that process's"
        clock.advance(3)
        await turn(pillarbox)
        assert len(at.arrivals) == 2


@pytest.mark.parametrize("ahead", [timedelta(hours=-1), timedelta(hours=1)])
async def test_a_clock_that_is_wrong_takes_nothing_from_the_living_and_waits_for_no_dead(
    database_url: str, tmp_path: Path, ahead: timedelta
) -> None:
    """DUR-09: to one that is ahead all leases look over, to one behind none ever does. What counts is
    whether they are renewed."""
    clock, elsewhere = ManualClock(), uuid4()
    async with receiver() as at, another(database_url, tmp_path, clock) as pillarbox:
        on = await hook(await pillarbox.team(), endpoint=at.url)
        await pillarbox.pool.execute(ENROLL_ELSEWHERE, elsewhere, clock.now())
        await publish(on.team)
        for _ in range(9):
            await leased_to(on, elsewhere, (LEASE - ahead).total_seconds())
            for _ in range(4):
                await turn(pillarbox)
                clock.advance(RENEW_EVERY / 4)
        assert not at.arrivals
        clock.advance(LEASE - timedelta(seconds=RENEW_EVERY / 2))
        await turn(pillarbox)
        clock.advance(RENEW_EVERY)
        await turn(pillarbox)
        assert len(at.arrivals) == 1


async def test_a_process_of_this_host_that_is_dead_loses_them_at_once(
    database_url: str, tmp_path: Path
) -> None:
    async with receiver() as at, another(database_url, tmp_path, ManualClock()) as pillarbox:
        on = await hook(await pillarbox.team(), endpoint=at.url)
        dead = uuid4()
        await pillarbox.pool.execute(
            "INSERT INTO processes (id, host, pid, pid_start, roles, started_at, seen_at)"
            " VALUES ($1, $2, 4194304, 1, 'webhooks', $3, $3)",
            dead,
            process_table.boot_id(),
            pillarbox.clock.now(),
        )
        await publish(on.team)
        await leased_to(on, dead, 60)
        await turn(pillarbox)
        assert len(at.arrivals) == 1


async def test_one_process_at_a_time_works_on_an_endpoint(database_url: str, tmp_path: Path) -> None:
    clock = ManualClock()
    async with (
        receiver() as at,
        another(database_url, tmp_path, clock) as first,
        another(database_url, tmp_path, clock) as second,
    ):
        release = asyncio.Event()

        async def when_released(_: Arrival) -> bytes:
            await release.wait()
            return status(200)

        at.answers(when_released)
        on = await hook(await first.team(), endpoint=at.url)
        for _ in range(3):
            await publish(on.team)
        clock.advance(0.001)
        await dispatcher(first).look()
        await at.wait_for(2)
        await publish(on.team)
        await turn(second)
        assert len(at.arrivals) == 2
        release.set()
        await dispatcher(first).idle()
        await turn(second)
        assert Counter(Counter(a.event for a in at.arrivals).values()) == {1: 4}


WAITING_TO = """
    UPDATE webhook_deliveries
       SET owner = $2, leased_until = $3, attempt = attempt + 1
     WHERE team_id = $1 AND NOT event_id = ANY($4::uuid[])
"""


@dataclass(frozen=True)
class Overdue:
    """Two attempts on the wire and two deliveries that wait in memory, all with a lease that is over."""

    at: Receiver
    on: Hook
    clock: ManualClock
    pillarbox: World
    release: asyncio.Event


@pytest.fixture
@asynccontextmanager
async def overdue(database_url: str, tmp_path: Path) -> AsyncIterator[Overdue]:
    clock, release = ManualClock(), asyncio.Event()
    async with receiver() as at, another(database_url, tmp_path, clock) as pillarbox:

        async def when_released(_: Arrival) -> bytes:
            await release.wait()
            return status(200)

        at.answers(when_released)
        on = await hook(await pillarbox.team(), endpoint=at.url)
        for _ in range(4):
            await publish(on.team)
        clock.advance(0.001)
        await dispatcher(pillarbox).look()
        await at.wait_for(2)
        clock.advance(60)
        yield Overdue(at=at, on=on, clock=clock, pillarbox=pillarbox, release=release)


async def test_a_lease_that_is_over_is_not_trusted(overdue: Overdue) -> None:
    """What waited in memory for too long is another's by now, and is not sent."""
    other, until = uuid4(), overdue.clock.now() + timedelta(seconds=60)
    await overdue.pillarbox.pool.execute(ENROLL_ELSEWHERE, other, overdue.clock.now())
    sent = [wire.event_id(arrival.event) for arrival in overdue.at.arrivals]
    await overdue.on.team.db.run(WAITING_TO, other, until, sent)
    overdue.release.set()
    await dispatcher(overdue.pillarbox).idle()
    assert len(overdue.at.arrivals) == 2
    assert [row["owner"] for row in await overdue.on.owed()] == [other, other]


async def test_what_waited_for_too_long_is_claimed_anew_and_sent_once(overdue: Overdue) -> None:
    overdue.release.set()
    await dispatcher(overdue.pillarbox).idle()
    await turn(overdue.pillarbox)
    assert Counter(Counter(a.event for a in overdue.at.arrivals).values()) == {1: 4}
    assert not await overdue.on.owed()


async def test_what_is_claimed_anew_before_its_first_attempt_ended_stays_held(
    overdue: Overdue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its lease is renewed, and its bytes are counted until it ends."""
    engine = dispatcher(overdue.pillarbox)
    give_back = engine._claims.give_back
    gate = asyncio.Event()

    async def and_claim(deliveries: Sequence[Delivery], earliest: datetime | None = None) -> None:
        await give_back(deliveries, earliest)
        overdue.at.answers(after_the_gate)
        await engine.look()

    async def after_the_gate(_: Arrival) -> bytes:
        await gate.wait()
        return status(200)

    monkeypatch.setattr(engine._claims, "give_back", and_claim)
    overdue.release.set()
    await overdue.at.wait_for(4)
    while engine.running > 2 or engine.items_in_memory > 2:
        await asyncio.sleep(0)
    assert engine.items_in_memory == 2
    assert await engine._claims.renew(list(engine._held.values())) == 0
    gate.set()
    await engine.idle()
    assert (engine.items_in_memory, engine._bytes) == (0, 0)
    assert Counter(Counter(a.event for a in overdue.at.arrivals).values()) == {1: 4}


async def test_a_renewal_after_a_step_back_of_the_clock_is_seen(overdue: Overdue) -> None:
    """DUR-09: a lease that stands still looks like that of a dead process. A late renewal shortens none."""
    held = list(dispatcher(overdue.pillarbox)._held.values())
    claims = dispatcher(overdue.pillarbox)._claims
    for back, moved in ((0, 0), (10, 10), (3600, 0)):
        overdue.clock.jump(-back)
        assert await claims.renew(held) == 0
        ends = {row["leased_until"] - overdue.clock.now() for row in await overdue.on.owed()}
        assert ends == {LEASE + timedelta(seconds=moved)}
    overdue.release.set()
    await dispatcher(overdue.pillarbox).idle()


async def test_a_success_counts_after_the_lease_and_a_failure_does_not(
    database_url: str, tmp_path: Path
) -> None:
    clock = ManualClock()
    async with receiver() as at, another(database_url, tmp_path, clock) as pillarbox:
        on = await hook(await pillarbox.team(), endpoint=at.url)
        for code, expected in ((200, "success"), (500, "pending")):

            async def after_all(_: Arrival, code: int = code) -> bytes:
                await leased_to(on, uuid4(), 60)
                return status(code)

            at.answers(after_all)
            await publish(on.team)
            clock.advance(0.001)
            await dispatcher(pillarbox).look()
            await dispatcher(pillarbox).idle()
            event = (await on.events())[-1]
            assert event["status"] == expected
            codes = (await on.get(f"/events/{event['id']}/attempts"))["data"]
            assert [attempt["http_status_code"] for attempt in codes] == [code], "what was done is told"


async def test_a_stop_gives_back_what_it_did_not_finish(database_url: str, tmp_path: Path) -> None:
    async with receiver() as at, another(database_url, tmp_path) as second:
        on = await hook(await second.team(), endpoint=at.url)
        for _ in range(4):
            await publish(on.team)
        async with another(database_url, tmp_path) as first:
            at.answers(hangs)
            await dispatcher(first).look()
            await at.wait_for(2)
        assert {row["owner"] for row in await on.owed()} == {None}
        at.answers(status(200))
        await turn(second)
        assert {event["status"] for event in await on.events()} == {"success"}


async def test_a_key_that_is_gone_stops_one_webhook_only(database_url: str, tmp_path: Path) -> None:
    async with receiver() as at, another(database_url, tmp_path, ManualClock()) as pillarbox:
        team = await pillarbox.team()
        broken, good = await hook(team, endpoint=at.url), await hook(team, endpoint=at.url)
        await team.db.run(
            "UPDATE webhooks SET secrets = ARRAY['x'::bytea] WHERE team_id = $1 AND id = $2", UUID(broken.id)
        )
        await publish(team)
        await turn(pillarbox)
        assert len(at.arrivals) == 1
        assert [event["status"] for event in await good.events()] == ["success"]
        assert [event["status"] for event in await broken.events()] == ["pending"]


async def test_two_processes_send_each_attempt_once(database_url: str, tmp_path: Path) -> None:
    """And together never have more than ten of one endpoint in flight."""
    async with receiver() as at:
        now, most = 0, 0

        async def counted(_: Arrival) -> bytes:
            nonlocal now, most
            now += 1
            most = max(most, now)
            await asyncio.sleep(0.002)
            now -= 1
            return status(200)

        at.answers(counted)
        async with (
            world(database_url, tmp_path, **WEBHOOKS) as first,
            world(database_url, tmp_path, **WEBHOOKS) as second,
        ):
            team = await first.team()
            on = await hook(team, endpoint=at.url)
            for _ in range(30):
                await publish(team, *["domain.updated"] * 10)
                dispatcher(second).wake()
            await at.wait_for(300)
            async with asyncio.timeout(10):
                while await on.owed():
                    await asyncio.sleep(0.02)
        assert Counter(Counter(a.event for a in at.arrivals).values()) == {1: 300}
        assert 2 <= most <= 10
