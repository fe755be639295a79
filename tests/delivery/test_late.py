"""Servers that hang keep neither their own site's slots nor those of others (OUT-11)."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from kit.manual_world import clock_of, relayed_world
from kit.smtp_sink import SILENCE, USUAL, Session
from kit.waiting_items import waiting_item
from kit.world import World
from pillarbox.delivery.items import Item
from pillarbox.delivery.rate_control import SiteLimits, SiteSignal
from pillarbox.delivery.site_scheduler import LATE_AFTER, MOST_LATE, Site, SiteScheduler
from pillarbox.delivery.smtp import transport

FEW = SiteLimits(2, 5)


def item(destination: str) -> Item:
    return waiting_item(destination)


def filled(scheduler: SiteScheduler, destination: str, count: int) -> None:
    for _ in range(count):
        scheduler.add(item(destination))


def started(scheduler: SiteScheduler, now: float) -> list[Item]:
    found = []
    while (taken := scheduler.take(now)) is not None:
        found.append(taken)
    return found


def test_who_is_late_gives_its_slot_to_the_next_up_to_a_bound() -> None:
    scheduler = SiteScheduler(lambda destination: Site(destination, FEW), 100)
    filled(scheduler, "hangs.example", 50)
    hanging = started(scheduler, 0.0)
    assert len(hanging) == FEW.start
    assert scheduler.next_change_in(0.0) == LATE_AFTER
    assert started(scheduler, LATE_AFTER - 0.1) == []
    for turn in range(1, 10):
        hanging += started(scheduler, turn * LATE_AFTER)
    assert len(hanging) == FEW.most + FEW.start
    for taken in hanging[:3]:
        scheduler.finish(taken, SiteSignal.SILENT, 100.0)
    assert len(started(scheduler, 100.0)) == FEW.start
    assert scheduler.late == FEW.most + FEW.start - 3


def test_many_sites_that_hang_leave_room_for_another() -> None:
    """OUT-11."""
    scheduler = SiteScheduler(lambda destination: Site(destination, FEW), 20)
    for number in range(10):
        filled(scheduler, f"hangs{number}.example", 2)
    assert len(started(scheduler, 0.0)) == 20
    filled(scheduler, "good.example", 1)
    assert started(scheduler, 1.0) == []
    [good] = started(scheduler, LATE_AFTER)
    assert good.destination == "good.example"
    for number in range(MOST_LATE):
        filled(scheduler, f"more{number}.example", 1)
    for turn in range(2, 40):
        started(scheduler, turn * LATE_AFTER)
    assert scheduler.running <= 20 + MOST_LATE


def test_only_servers_for_whose_slot_others_wait_are_hurried() -> None:
    scheduler, hurried = SiteScheduler(lambda destination: Site(destination, FEW), 100), list[str]()
    for name in ("alone.example", "full.example"):
        for _ in range(FEW.start):
            made = item(name)
            made.abort_if_silent = lambda name=name: hurried.append(name)  # type: ignore[misc]
            scheduler.add(made)
    started(scheduler, 0.0)
    filled(scheduler, "full.example", FEW.most + 1)
    for turn in range(1, 10):
        started(scheduler, turn * LATE_AFTER)
    scheduler.abort_if_silent()
    assert hurried == ["full.example"] * FEW.start


async def test_a_relay_that_hangs_in_data_takes_the_rest(database_url: str, tmp_path: Path) -> None:
    """It lets the first thirty connections hang, with and without the final dot; thirty more get through."""
    opened = 0

    def hang(session: Session, argument: Any) -> Any:
        nonlocal opened
        opened += 1
        return SILENCE if opened <= 30 else USUAL

    async with relayed_world(database_url, tmp_path) as (here, sink):
        sink.script("DATA", then=hang)
        team = await here.team()
        await team.domain()
        for number in range(60):
            await team.send(to=f"a{number}@quay.example")
        await delivered_until(here, sink, lambda: len(sink.received) >= 30)
        assert len(sink.received) == 30


@pytest.mark.parametrize("stage", ["CONNECT", "EHLO", "MAIL", "DATA"])
async def test_a_silent_server_is_given_up_on_before_the_dot(
    database_url: str, tmp_path: Path, stage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport, "SILENT_SECONDS", 0.0)
    async with relayed_world(database_url, tmp_path) as (here, sink):
        sink.script(stage, SILENCE)
        team = await here.team()
        await team.domain()
        email = await team.send()
        clock_of(here).advance(0.001)
        await here.engine.look()
        [running] = here.engine._held.values()
        async with asyncio.timeout(10):
            await (sink.connections(1) if stage == "CONNECT" else sink.commands(stage))
            while running.abort_if_silent is not None:
                running.abort_if_silent()
                await asyncio.sleep(0.01)
            await here.engine.idle()
        assert (await team.kinds(email))[-1] == "delivery_delayed"


async def test_nobody_is_hurried_between_the_dot_and_its_answer(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport, "SILENT_SECONDS", 0.0)
    async with relayed_world(database_url, tmp_path) as (here, sink):
        go_on = asyncio.Event()
        sink.script("DOT", (go_on, USUAL))
        team = await here.team()
        await team.domain()
        email = await team.send()
        clock_of(here).advance(0.001)
        await here.engine.look()
        [running] = here.engine._held.values()
        await sink.commands("DATA")
        await asyncio.sleep(0.1)
        for _ in range(5):
            if running.abort_if_silent is not None:
                running.abort_if_silent()
            await asyncio.sleep(0.02)
        go_on.set()
        await here.engine.idle()
        assert await team.kinds(email) == ["queued", "sent", "delivered"]
        assert len(sink.received) == 1


async def delivered_until(here: World, sink: Any, done: Any) -> None:
    """Let time pass until it is done; what hangs goes on hanging."""
    async with asyncio.timeout(30):
        while not done():
            await here.engine._heartbeat()
            await here.engine.look()
            await asyncio.sleep(0.05)
            clock_of(here).advance(2)
            here.engine._pump()
