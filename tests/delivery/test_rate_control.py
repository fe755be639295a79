"""How fast a site is served: pure tables of signals and times (OUT-11, OUT-12)."""

from __future__ import annotations

from uuid import UUID

from kit.waiting_items import waiting_item
from pillarbox.delivery.items import Item
from pillarbox.delivery.rate_control import (
    BREAK_AFTER,
    BREAK_SECONDS,
    CROWDED_PAUSE,
    GROW_AFTER,
    RateControl,
    SiteLimits,
    SiteSignal,
)
from pillarbox.delivery.site_scheduler import Site, SiteScheduler

SMALL = SiteLimits(2, 10)


def item(team: int, destination: str) -> Item:
    """An item of which only its team and destination matter."""
    return waiting_item(destination, team)


def test_a_site_starts_small_and_grows_with_clean_deliveries() -> None:
    control = RateControl(SMALL)
    assert control.slots == 2
    for now in range(400):
        control.begin(now)
        control.end(SiteSignal.CLEAN, now)
    assert control.slots == 10


def test_a_crowded_site_gets_half_the_connections_and_no_more_for_ten_minutes() -> None:
    control = RateControl(SMALL, slots=0)
    control.slots = 8
    control.running = 8
    control.end(SiteSignal.CROWDED, 100.0)
    assert control.slots == 4
    for at in range(60):
        control.begin(100.0 + at)
        control.end(SiteSignal.CLEAN, 100.0 + at)
    assert control.slots == 4


def test_ten_failures_in_a_row_close_a_site_for_a_minute_then_one_mail_probes_it() -> None:
    control = RateControl(SMALL)
    closed = []
    for _ in range(BREAK_AFTER):
        control.begin(0.0)
        closed.append(control.end(SiteSignal.UNREACHABLE, 0.0))
    assert closed == [False] * (BREAK_AFTER - 1) + [True]
    assert control.opens_at() == BREAK_SECONDS
    assert control.slots == 1
    control.begin(60.0)
    assert control.end(SiteSignal.UNREACHABLE, 61.0)
    assert control.opens_at() == 61.0 + BREAK_SECONDS


def test_a_process_without_descriptors_closes_no_site() -> None:
    """It opens fewer connections, waits a moment, and grows again: the site is not the one that failed."""
    control = RateControl(SMALL)
    for _ in range(2 * BREAK_AFTER):
        control.begin(0.0)
        assert not control.end(SiteSignal.STARVED, 0.0)
    assert (control.slots, control.opens_at()) == (1, CROWDED_PAUSE)
    for second in range(4 * GROW_AFTER):
        control.begin(10.0 + second)
        control.end(SiteSignal.CLEAN, 10.0 + second)
    assert control.slots > 1


def test_one_success_between_failures_keeps_the_site_open() -> None:
    control = RateControl(SMALL)
    for _ in range(5):
        for signal in [SiteSignal.UNREACHABLE] * (BREAK_AFTER - 1) + [SiteSignal.CLEAN]:
            control.begin(0.0)
            assert not control.end(signal, 0.0)


def test_a_provider_that_takes_two_a_second_gets_nearly_that_and_refuses_little() -> None:
    """After the first moments at least 80 % of the allowed rate, at most 5 % refused."""
    control = RateControl(SMALL)
    now, allowed_at = 0.0, [0.0, 0.0]
    taken = refused = 0
    while now < 240:
        now = max(now, control.opens_at()) + 0.01
        control.begin(now)
        oldest = min(allowed_at)
        if now - oldest >= 1.0:
            allowed_at[allowed_at.index(oldest)] = now
            signal = SiteSignal.CLEAN
        else:
            signal = SiteSignal.SLOW
        control.end(signal, now)
        if now > 120:
            taken += signal is SiteSignal.CLEAN
            refused += signal is SiteSignal.SLOW
    assert taken >= 0.8 * 2 * 120
    assert refused <= 0.05 * (taken + refused)


def test_sites_and_teams_take_turns() -> None:
    scheduler = SiteScheduler(lambda destination: Site(destination, SiteLimits(1, 1)), 100)
    for team, destination in [(1, "big"), (1, "big"), (1, "big"), (2, "big"), (1, "small")]:
        scheduler.add(item(team, destination))
    first, second = scheduler.take(0.0), scheduler.take(0.0)
    assert first is not None
    assert second is not None
    assert {first.destination, second.destination} == {"big", "small"}
    assert scheduler.take(0.0) is None
    big = first if first.destination == "big" else second
    scheduler.finish(big, SiteSignal.CLEAN, 0.0)
    third = scheduler.take(0.0)
    assert third is not None
    assert third.team_id == UUID(int=2)


def test_a_site_with_a_rate_waits_until_it_opens_and_others_do_not() -> None:
    scheduler = SiteScheduler(lambda destination: Site(destination, SiteLimits(1, 1)), 100)
    scheduler.add(item(1, "slow"))
    scheduler.add(item(1, "slow"))
    slow = scheduler.take(0.0)
    assert slow is not None
    scheduler.finish(slow, SiteSignal.SLOW, 0.0)
    assert scheduler.take(0.5) is None
    assert scheduler.next_change_in(0.5) == 0.5
    scheduler.add(item(1, "fast"))
    fast = scheduler.take(0.5)
    assert fast is not None
    assert fast.destination == "fast"
    again = scheduler.take(1.0)
    assert again is not None
    assert again.destination == "slow"
