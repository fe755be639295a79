"""Processes divide the slots of a site and share its complaints (architecture 2.5, OUT-11, OUT-12)."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from uuid import UUID

import pytest

from kit.clock import ManualClock
from kit.manual_world import clock_of
from kit.waiting_items import waiting_item
from kit.world import World
from pillarbox.delivery.queue.claims import ItemClaims
from pillarbox.delivery.rate_control import (
    BREAK_AFTER,
    BREAK_SECONDS,
    PROBE_LEAD,
    RateControl,
    SiteLimits,
    SiteSignal,
)
from pillarbox.delivery.site_scheduler import Site, SiteScheduler
from pillarbox.delivery.smtp.site_sharing import LIVES, SiteSharing

SITE = "mx mx.quay.example"
LIMITS = SiteLimits(4, 10)
HERE, THERE = UUID(int=1), UUID(int=2)


class Process:
    """What a process knows of sites, without the mail."""

    def __init__(self, pillarbox: World, owner: UUID) -> None:
        self.clock: ManualClock = clock_of(pillarbox)
        self.scheduler = SiteScheduler(lambda _: Site(SITE, LIMITS), 200)
        self.site_sharing = SiteSharing(pillarbox.pool, self.clock, owner)

    def end_mail(self, signal: SiteSignal) -> None:
        """One mail to the site ends with this signal."""
        self.hold(1)
        item = self.scheduler.take(self.clock.boottime())
        assert item is not None
        self.scheduler.finish(item, signal, self.clock.boottime())

    def hold(self, count: int) -> None:
        for _ in range(count):
            self.scheduler.add(waiting_item("quay.example"))

    def starts(self) -> int:
        """How many of the mails that wait may start now."""
        started = 0
        while self.scheduler.take(self.clock.boottime()) is not None:
            started += 1
        return started

    async def exchange(self) -> None:
        await self.site_sharing.exchange_complaints(self.scheduler)


@pytest.mark.parametrize(("sharers", "start", "most"), [(1, 4, 10), (2, 2, 5), (3, 1, 3), (50, 1, 1)])
def test_slots_are_divided_and_nobody_goes_without(sharers: int, start: int, most: int) -> None:
    control = RateControl(LIMITS, sharers)
    assert (control.slots, control.most) == (start, most)
    for now in range(500):
        control.begin(now)
        control.end(SiteSignal.CLEAN, now)
    assert control.slots == most


def test_what_stays_on_the_machine_is_not_divided() -> None:
    assert RateControl(SiteLimits(64, 64, is_shared=False), 8).slots == 64


def test_a_newcomer_takes_slots_and_what_it_leaves_is_grown_into() -> None:
    control = RateControl(SiteLimits(10, 10))
    control.share(2)
    assert control.slots == 5
    control.share(1)
    assert (control.slots, control.most) == (5, 10)


async def test_the_living_are_counted_by_their_heartbeats(pillarbox: World) -> None:
    """A process that is silent for long, and one that does not deliver, take no slots."""
    clock = clock_of(pillarbox)
    here = Process(pillarbox, HERE)
    app = pillarbox.app
    await app.need(ItemClaims).write_heartbeat("api,delivery,jobs")
    for number, (roles, age) in enumerate(
        [("delivery", timedelta(0)), ("api,jobs", timedelta(0)), ("delivery", LIVES)]
    ):
        await pillarbox.pool.execute(
            "INSERT INTO processes VALUES ($1, 'elsewhere', 1, 1, $2, $3, $3)",
            UUID(int=100 + number),
            roles,
            clock.now() - age,
        )
    await here.site_sharing.divide(here.scheduler)
    here.hold(10)
    assert here.starts() == LIMITS.start // 2


async def test_a_site_out_of_reach_is_left_alone_by_all_and_probed_by_its_finder_first(
    pillarbox: World,
) -> None:
    here, there = Process(pillarbox, HERE), Process(pillarbox, THERE)
    there.end_mail(SiteSignal.CLEAN)
    for _ in range(BREAK_AFTER):
        here.end_mail(SiteSignal.UNREACHABLE)
    await here.exchange()
    await there.exchange()
    for process in (here, there):
        process.hold(3)
        assert process.starts() == 0
    here.clock.advance(BREAK_SECONDS + 0.5)
    assert (here.starts(), there.starts()) == (1, 0)
    here.clock.advance(PROBE_LEAD)
    assert there.starts() == 1


async def test_a_failed_probe_is_shared_before_the_others_try(pillarbox: World) -> None:
    here, there = Process(pillarbox, HERE), Process(pillarbox, THERE)
    there.end_mail(SiteSignal.CLEAN)
    for _ in range(BREAK_AFTER):
        here.end_mail(SiteSignal.UNREACHABLE)
    await here.exchange()
    await there.exchange()
    here.clock.advance(BREAK_SECONDS + 0.5)
    here.end_mail(SiteSignal.UNREACHABLE)
    await here.exchange()
    await there.exchange()
    here.clock.advance(PROBE_LEAD)
    there.hold(3)
    assert there.starts() == 0


async def test_a_crowded_site_gets_fewer_connections_from_all(pillarbox: World) -> None:
    """Once for each complaint, however often it is read."""
    here, there = Process(pillarbox, HERE), Process(pillarbox, THERE)
    there.end_mail(SiteSignal.CLEAN)
    here.end_mail(SiteSignal.CROWDED)
    await here.exchange()
    for _ in range(3):
        await there.exchange()
        there.clock.advance(6)
    there.hold(10)
    assert there.starts() == LIMITS.start // 2


async def test_a_slow_site_gets_the_rate_that_it_bears_from_all(pillarbox: World) -> None:
    here, there = Process(pillarbox, HERE), Process(pillarbox, THERE)
    there.end_mail(SiteSignal.CLEAN)
    here.end_mail(SiteSignal.SLOW)
    await here.exchange()
    await there.exchange()
    there.hold(3)
    assert there.starts() == 1


async def test_a_process_that_starts_applies_earlier_complaints(pillarbox: World) -> None:
    """Also of sites that it has no mail for yet."""
    here = Process(pillarbox, HERE)
    for _ in range(BREAK_AFTER):
        here.end_mail(SiteSignal.UNREACHABLE)
    await here.exchange()
    here.clock.advance(30)
    late = Process(pillarbox, THERE)
    await late.exchange()
    late.hold(2)
    assert late.starts() == 0
    late.clock.advance(BREAK_SECONDS - 30 + PROBE_LEAD + 0.5)
    assert late.starts() == 1


async def test_a_process_does_not_apply_its_own_complaints(pillarbox: World) -> None:
    here = Process(pillarbox, HERE)
    here.end_mail(SiteSignal.CROWDED)
    here.clock.advance(6)
    await here.exchange()
    here.clock.advance(6)
    here.hold(10)
    assert here.starts() == 1


async def test_old_complaints_go(pillarbox: World) -> None:
    here = Process(pillarbox, HERE)
    here.end_mail(SiteSignal.CROWDED)
    await here.exchange()
    await pillarbox.pool.execute("UPDATE sites SET site = 'mx gone.example', changed_at = '2020-01-01Z'")
    here.clock.advance(6)
    here.end_mail(SiteSignal.CROWDED)
    await here.exchange()
    assert [row["site"] for row in await pillarbox.pool.fetch("SELECT site FROM sites")] == [SITE]


async def test_two_processes_may_share_many_sites_at_once(pillarbox: World) -> None:
    processes = [Process(pillarbox, UUID(int=number)) for number in range(4)]
    for process in processes:
        process.scheduler = SiteScheduler(lambda destination: Site(destination, LIMITS), 200)
        for number in range(50):
            process.scheduler.add(waiting_item(f"quay{number}.example"))
        while (item := process.scheduler.take(0.0)) is not None:
            process.scheduler.finish(item, SiteSignal.CROWDED, 0.0)
    await asyncio.gather(*(process.exchange() for process in processes))
    assert await pillarbox.pool.fetchval("SELECT count(*) FROM sites") == 50
