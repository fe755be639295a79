"""Copies of broadcasts wait behind all other mail, at each site and in the process (broadcasts.md 7)."""

from __future__ import annotations

import asyncio
import math
import os

from kit.waiting_items import waiting_item
from pillarbox.delivery.copy_window import FASTER, LATE, SLOWEST, CopyRate
from pillarbox.delivery.other_mail import QUIET_AFTER, TransactionalActivity
from pillarbox.delivery.rate_control import SiteLimits, SiteSignal
from pillarbox.delivery.site_scheduler import COPIES, Site, SiteScheduler
from pillarbox.kernel.process import shared_memory

WIDE = SiteLimits(8, 8)


def scheduler(most_running: int = 200) -> SiteScheduler:
    return SiteScheduler(lambda destination: Site(destination, WIDE), most_running)


def test_other_mail_goes_first_whenever_it_came() -> None:
    made = scheduler()
    for _ in range(3):
        made.add(waiting_item("quay.example", is_copy=True))
    made.add(waiting_item("quay.example", team=2))
    made.add(waiting_item("orchard.example"))
    taken = [item for _ in range(5) if (item := made.take(0.0)) is not None]
    assert [item.is_copy for item in taken] == [False, False, True, True, True]


def test_copies_leave_slots_of_their_site_free() -> None:
    made = scheduler()
    for _ in range(20):
        made.add(waiting_item("quay.example", is_copy=True))
    running = []
    while (item := made.take(0.0)) is not None:
        running.append(item)
    assert len(running) == 7
    made.add(waiting_item("quay.example"))
    assert (other := made.take(0.0)) is not None
    assert not other.is_copy
    made.finish(running.pop(), SiteSignal.CLEAN, 0.0)
    assert (following := made.take(0.0)) is not None
    assert following.is_copy


def test_copies_leave_room_in_the_process() -> None:
    made = scheduler(most_running=8)
    for number in range(20):
        made.add(waiting_item(f"quay{number}.example", is_copy=True))
    running = []
    while (item := made.take(0.0)) is not None:
        running.append(item)
    assert len(running) == 7
    made.add(waiting_item("orchard.example"))
    assert (other := made.take(0.0)) is not None
    assert not other.is_copy
    made.finish(running[0], SiteSignal.CLEAN, 0.0)
    assert (following := made.take(0.0)) is not None
    assert following.is_copy


def test_all_copies_are_served_when_nothing_else_waits() -> None:
    made = scheduler(most_running=4)
    for number in range(50):
        made.add(waiting_item(f"quay{number % 7}.example", is_copy=True))
    served = 0
    while (item := made.take(0.0)) is not None:
        made.finish(item, SiteSignal.CLEAN, 0.0)
        served += 1
    assert (served, made.waiting) == (50, 0)


def test_a_slow_site_gives_back_what_it_has_too_much_of() -> None:
    made = scheduler()
    for number in range(30):
        made.add(waiting_item("quay.example" if number < 25 else "orchard.example", is_copy=True))
    assert len(made.remove_surplus(10, COPIES)) == 15
    assert made.waiting_in((waiting_item("quay.example").team_id, "quay.example"), COPIES) == 10
    assert made.mail_waiting == 0


def test_copies_that_may_not_be_started_leave_other_mail_alone() -> None:
    made = scheduler()
    made.copies_to_start = 2
    for _ in range(4):
        made.add(waiting_item("quay.example", is_copy=True))
    assert [made.take(0.0) is not None for _ in range(3)] == [True, True, False]
    made.add(waiting_item("quay.example"))
    assert (other := made.take(0.0)) is not None
    assert not other.is_copy
    assert made.take(0.0) is None
    made.copies_to_start = math.inf
    assert [made.take(0.0) is not None for _ in range(3)] == [True, True, False]


def test_copies_are_started_more_slowly_where_the_loop_is_late_and_never_stop() -> None:
    rate, step = CopyRate(), 0.02
    punctual = [rate.copies(step, step) for _ in range(500)]
    assert punctual == sorted(punctual)
    assert math.isclose(punctual[-1] / step, SLOWEST + 10 * FASTER)
    late = step + LATE * 2
    slowed = [rate.copies(late, step) for _ in range(100)]
    assert slowed == sorted(slowed, reverse=True)
    assert math.isclose(slowed[-1] / late, SLOWEST)
    assert rate.copies(step, step) / step > SLOWEST


def test_a_rate_that_is_not_reached_does_not_grow() -> None:
    """Else a second of slow destinations would let thousands of copies start at once."""
    rate, step = CopyRate(), 0.02
    assert {rate.copies(step, step, all_started=False) for _ in range(500)} == {SLOWEST * step}


async def test_all_processes_of_a_host_know_of_its_mail() -> None:
    """They share the processors, and a client with one connection gives all its mail to one of them."""
    memory = shared_memory.create()
    try:
        one, another = TransactionalActivity(memory), TransactionalActivity(memory)
        assert not another.is_here
        one.note()
        assert another.is_here
        await asyncio.sleep(QUIET_AFTER * 1.5)
        assert not one.is_here
    finally:
        os.close(memory)
