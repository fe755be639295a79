"""A slow endpoint hurts only itself (WH-05)."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from uuid import UUID, uuid4

from kit.receiver import WEBHOOKS, hangs, receiver
from kit.webhooks import hook, publish
from kit.world import world
from pillarbox.webhooks.dispatch.deliveries import AttemptResult, Delivery, Endpoint
from pillarbox.webhooks.dispatch.engine import WebhookDispatcher
from pillarbox.webhooks.dispatch.scheduler import EndpointScheduler, EndpointSlots

HANGING = 100
GOOD = 40


async def test_a_hundred_hanging_endpoints_and_a_good_one(database_url: str, tmp_path: Path) -> None:
    """The good one gets all of its events, at once, while the others hang with a backlog."""
    async with world(database_url, tmp_path, most_webhooks="100", **WEBHOOKS) as pillarbox:
        bad, good = await pillarbox.team(), await pillarbox.team()
        async with receiver() as dead, receiver() as at:
            dead.answers(hangs)
            for _ in range(HANGING):
                await hook(bad, endpoint=dead.url)
            await hook(good, endpoint=at.url)
            await publish(bad, *["domain.updated"] * 30)
            await dead.wait_for(HANGING)
            lags = []
            for number in range(GOOD):
                began = time.monotonic()
                await publish(good)
                arrival = (await at.wait_for(number + 1))[-1]
                lags.append(arrival.at - began)
            print(f"\np50 {sorted(lags)[GOOD // 2]:.3f} s, p95 {sorted(lags)[int(GOOD * 0.95)]:.3f} s")
            assert sorted(lags)[int(GOOD * 0.95)] < 2
            assert len(dead.arrivals) == dead.connections, "they hang all the time"
            dispatcher = pillarbox.app.need(WebhookDispatcher)
            assert dispatcher is not None
            assert dispatcher.items_in_memory <= 6 * HANGING


async def test_one_team_with_much_does_not_keep_out_another(database_url: str, tmp_path: Path) -> None:
    async with world(database_url, tmp_path, **WEBHOOKS) as pillarbox:
        busy, quiet = await pillarbox.team(), await pillarbox.team()
        async with receiver() as crowded, receiver() as at:
            hooks = [await hook(busy, endpoint=crowded.url) for _ in range(10)]
            await hook(quiet, endpoint=at.url)
            for _ in range(5):
                await publish(busy, *["domain.updated"] * 50)
            began = time.monotonic()
            await publish(quiet)
            await at.wait_for(1)
            took = time.monotonic() - began
            open_ = sum([len(await on.owed()) for on in hooks])
            print(f"\n{took:.3f} s, beside {open_} open deliveries")
            assert open_ > 100, "it came before most of the others"
            async with asyncio.timeout(30):
                while len(crowded.arrivals) < 2500:
                    await asyncio.sleep(0.05)


def test_new_endpoints_that_hang_leave_slots_to_another_team() -> None:
    """Nobody knows yet that they hang: each team leaves as much of their half free as it takes."""
    scheduler, teams = EndpointScheduler(60), [UUID(int=number) for number in range(1, 5)]
    for team in teams[:2]:
        fill(scheduler, team, 100)
        begun(scheduler)
        assert scheduler.running < 30
    fill(scheduler, teams[2], 1)
    assert [queue.webhook[0] for queue in begun(scheduler)] == [teams[2]]
    known = fill(scheduler, teams[3], 1)[0]
    [queue] = begun(scheduler)
    assert queue is known
    scheduler.finish(queue, AttemptResult(200, ""), 0.0)
    for _ in range(8):
        scheduler.add(queue.webhook, queue.endpoint, [delivery()], 0.0)
    assert begun(scheduler), "who answers has slots of its own"


def fill(scheduler: EndpointScheduler, team: UUID, endpoints: int) -> list[EndpointSlots]:
    endpoint = Endpoint.__new__(Endpoint)
    webhooks = [(team, uuid4()) for _ in range(endpoints)]
    return [scheduler.add(webhook, endpoint, [delivery(), delivery()], 0.0) for webhook in webhooks]


def begun(scheduler: EndpointScheduler) -> list[EndpointSlots]:
    found: list[EndpointSlots] = []
    while (taken := scheduler.take()) is not None:
        if taken[0] not in found:
            found.append(taken[0])
    return found


def delivery() -> Delivery:
    return Delivery.__new__(Delivery)
