"""Ids of one moment are in order, among themselves and with those before and after."""

from __future__ import annotations

from datetime import timedelta

from kit.clock import ManualClock
from pillarbox.kernel.ids import Ids, first_id


def test_several_ids_stand_between_those_before_and_after() -> None:
    """The clock stands still meanwhile."""
    ids = Ids(ManualClock())
    made = [ids.new(), *ids.several(3), *ids.several(0), ids.new(), *ids.several(1)]
    assert made == sorted(set(made))
    assert len(made) == 6


def test_ids_run_ahead_of_a_clock_that_is_set_back_by_seconds() -> None:
    clock = ManualClock()
    ids = Ids(clock)
    before = ids.stamp()
    clock.jump(-9)
    after = ids.stamp()
    assert before.id < after.id
    assert before.at < after.at < before.at + timedelta(milliseconds=1)
    assert ids.now() == clock.now()


def test_ids_follow_a_clock_that_is_set_back_far() -> None:
    """An hour ahead and back: what is made then is dated by the clock, and no id is made twice."""
    clock = ManualClock()
    ids = Ids(clock)
    clock.jump(3600)
    ahead = {ids.new() for _ in range(3)} | set(ids.several(3))
    clock.jump(-3600)
    stamp = ids.stamp()
    assert stamp.at == clock.now()
    assert max(ids.several(2)) < first_id(clock.now() + timedelta(seconds=1)) < min(ahead)
    clock.advance(3600)
    again = [ids.new() for _ in range(6)]
    assert ahead.isdisjoint(again)
    assert again == sorted(again)
