"""Processes divide the slots of a site and hear of its complaints (architecture 2.5, OUT-11, OUT-12)."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path
from uuid import UUID

import pytest

from kit.clock import ManualClock
from kit.manual_world import clock_of, manual_world
from kit.world import World
from pillarbox.delivery.items import Item
from pillarbox.delivery.rate_control import (
    BREAK_AFTER,
    BREAK_SECONDS,
    PROBE_LEAD,
    Limits,
    RateControl,
    Signal,
)
from pillarbox.delivery.site_scheduler import Site, SiteScheduler
from pillarbox.delivery.smtp.site_sharing import LIVES, SiteSharing

SITE = "mx mx.quay.example"
LIMITS = Limits(4, 10)
HERE, THERE = UUID(int=1), UUID(int=2)


class Process:
    """What a process knows of sites, without the mail."""

    def __init__(self, pillarbox: World, owner: UUID) -> None:
        self.clock: ManualClock = clock_of(pillarbox)
        self.lanes = SiteScheduler(lambda _: Site(SITE, LIMITS), 200)
        self.neighbours = SiteSharing(pillarbox.pool, self.clock, owner)

    def carry(self, signal: Signal) -> None:
        """One mail to the site ends with this signal."""
        self.hold(1)
        item = self.lanes.take(self.clock.boottime())
        assert item is not None
        self.lanes.finish(item, signal, self.clock.boottime())

    def hold(self, count: int) -> None:
        for _ in range(count):
            made = Item.__new__(Item)
            made.team_id, made.destination, made.running, made.site = UUID(int=1), "quay.example", False, ""
            self.lanes.add(made)

    def starts(self) -> int:
        """How many of the mails that wait may start now."""
        started = 0
        while self.lanes.take(self.clock.boottime()) is not None:
            started += 1
        return started

    async def exchange(self) -> None:
        await self.neighbours.exchange(self.lanes)


@pytest.mark.parametrize(("sharers", "start", "most"), [(1, 4, 10), (2, 2, 5), (3, 1, 3), (50, 1, 1)])
def test_slots_are_divided_and_nobody_goes_without(sharers: int, start: int, most: int) -> None:
    pace = RateControl(LIMITS, sharers)
    assert (pace.slots, pace.most) == (start, most)
    for now in range(500):
        pace.begin(now)
        pace.end(Signal.CLEAN, now)
    assert pace.slots == most


def test_what_stays_on_the_machine_is_not_divided() -> None:
    assert RateControl(Limits(64, 64, is_shared=False), 8).slots == 64


def test_a_newcomer_takes_slots_and_what_it_leaves_is_grown_into() -> None:
    pace = RateControl(Limits(10, 10))
    pace.share(2)
    assert pace.slots == 5
    pace.share(1)
    assert (pace.slots, pace.most) == (5, 10)


async def test_the_living_are_counted_by_their_heartbeats(database_url: str, tmp_path: Path) -> None:
    """A process that is silent for long, and one that does not deliver, take no slots."""
    async with manual_world(database_url, tmp_path) as pillarbox:
        clock = clock_of(pillarbox)
        here = Process(pillarbox, HERE)
        house = pillarbox.app.house
        await house.claims.enroll("api,delivery,jobs")
        for number, (roles, age) in enumerate(
            [("delivery", timedelta(0)), ("api,jobs", timedelta(0)), ("delivery", LIVES)]
        ):
            await pillarbox.pool.execute(
                "INSERT INTO processes VALUES ($1, 'elsewhere', 1, 1, $2, $3, $3)",
                UUID(int=100 + number),
                roles,
                clock.now() - age,
            )
        await here.neighbours.divide(here.lanes)
        here.hold(10)
        assert here.starts() == LIMITS.start // 2


async def test_a_site_out_of_reach_is_left_alone_by_all_and_probed_by_its_finder_first(
    database_url: str, tmp_path: Path
) -> None:
    async with manual_world(database_url, tmp_path) as pillarbox:
        here, there = Process(pillarbox, HERE), Process(pillarbox, THERE)
        there.carry(Signal.CLEAN)
        for _ in range(BREAK_AFTER):
            here.carry(Signal.UNREACHABLE)
        await here.exchange()
        await there.exchange()
        for process in (here, there):
            process.hold(3)
            assert process.starts() == 0
        here.clock.advance(BREAK_SECONDS + 0.5)
        assert (here.starts(), there.starts()) == (1, 0)
        here.clock.advance(PROBE_LEAD)
        assert there.starts() == 1


async def test_a_failed_probe_is_told_before_the_others_try(database_url: str, tmp_path: Path) -> None:
    async with manual_world(database_url, tmp_path) as pillarbox:
        here, there = Process(pillarbox, HERE), Process(pillarbox, THERE)
        there.carry(Signal.CLEAN)
        for _ in range(BREAK_AFTER):
            here.carry(Signal.UNREACHABLE)
        await here.exchange()
        await there.exchange()
        here.clock.advance(BREAK_SECONDS + 0.5)
        here.carry(Signal.UNREACHABLE)
        await here.exchange()
        await there.exchange()
        here.clock.advance(PROBE_LEAD)
        there.hold(3)
        assert there.starts() == 0


async def test_a_crowded_site_gets_fewer_connections_from_all(database_url: str, tmp_path: Path) -> None:
    """Once for each complaint, however often it is read."""
    async with manual_world(database_url, tmp_path) as pillarbox:
        here, there = Process(pillarbox, HERE), Process(pillarbox, THERE)
        there.carry(Signal.CLEAN)
        here.carry(Signal.CROWDED)
        await here.exchange()
        for _ in range(3):
            await there.exchange()
            there.clock.advance(6)
        there.hold(10)
        assert there.starts() == LIMITS.start // 2


async def test_a_slow_site_gets_the_rate_that_it_bears_from_all(database_url: str, tmp_path: Path) -> None:
    async with manual_world(database_url, tmp_path) as pillarbox:
        here, there = Process(pillarbox, HERE), Process(pillarbox, THERE)
        there.carry(Signal.CLEAN)
        here.carry(Signal.SLOW)
        await here.exchange()
        await there.exchange()
        there.hold(3)
        assert there.starts() == 1


async def test_a_process_that_starts_hears_what_was_said_before(database_url: str, tmp_path: Path) -> None:
    """Also of sites that it has no mail for yet."""
    async with manual_world(database_url, tmp_path) as pillarbox:
        here = Process(pillarbox, HERE)
        for _ in range(BREAK_AFTER):
            here.carry(Signal.UNREACHABLE)
        await here.exchange()
        here.clock.advance(30)
        late = Process(pillarbox, THERE)
        await late.exchange()
        late.hold(2)
        assert late.starts() == 0
        late.clock.advance(BREAK_SECONDS - 30 + PROBE_LEAD + 0.5)
        assert late.starts() == 1


async def test_a_process_does_not_hear_itself(database_url: str, tmp_path: Path) -> None:
    async with manual_world(database_url, tmp_path) as pillarbox:
        here = Process(pillarbox, HERE)
        here.carry(Signal.CROWDED)
        here.clock.advance(6)
        await here.exchange()
        here.clock.advance(6)
        here.hold(10)
        assert here.starts() == 1


async def test_old_complaints_go(database_url: str, tmp_path: Path) -> None:
    async with manual_world(database_url, tmp_path) as pillarbox:
        here = Process(pillarbox, HERE)
        here.carry(Signal.CROWDED)
        await here.exchange()
        await pillarbox.pool.execute("UPDATE sites SET site = 'mx gone.example', changed_at = '2020-01-01Z'")
        here.clock.advance(6)
        here.carry(Signal.CROWDED)
        await here.exchange()
        assert [row["site"] for row in await pillarbox.pool.fetch("SELECT site FROM sites")] == [SITE]


async def test_two_processes_may_tell_of_many_sites_at_once(database_url: str, tmp_path: Path) -> None:
    async with manual_world(database_url, tmp_path) as pillarbox:
        processes = [Process(pillarbox, UUID(int=number)) for number in range(4)]
        for process in processes:
            process.lanes = SiteScheduler(lambda destination: Site(destination, LIMITS), 200)
            for number in range(50):
                made = Item.__new__(Item)
                made.team_id, made.destination = UUID(int=1), f"quay{number}.example"
                made.running, made.site = False, ""
                process.lanes.add(made)
            while (item := process.lanes.take(0.0)) is not None:
                process.lanes.finish(item, Signal.CROWDED, 0.0)
        await asyncio.gather(*(process.exchange() for process in processes))
        assert await pillarbox.pool.fetchval("SELECT count(*) FROM sites") == 50
