"""Ids of one moment are in order, among themselves and with those before and after."""

from __future__ import annotations

from kit.clock import ManualClock
from pillarbox.kernel.ids import Ids


def test_several_ids_stand_between_those_before_and_after() -> None:
    """The clock stands still meanwhile."""
    ids = Ids(ManualClock())
    made = [ids.new(), *ids.several(3), *ids.several(0), ids.new(), *ids.several(1)]
    assert made == sorted(set(made))
    assert len(made) == 6
