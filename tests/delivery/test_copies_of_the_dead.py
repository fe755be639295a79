"""Copies that a dead process had go out beside new ones, not behind them (docs/decisions/0156)."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kit.clock import ManualClock
from kit.waiting_items import waiting_item
from pillarbox.delivery.copies import BroadcastCopySource
from pillarbox.delivery.copy_window import AT_ONCE, MOST, MOST_NEW, CopyWindow
from pillarbox.delivery.items import Item
from pillarbox.delivery.other_mail import TransactionalActivity
from pillarbox.delivery.queue.claims import ItemClaims
from pillarbox.delivery.queue.pausing import Pauses
from pillarbox.delivery.rate_control import SiteLimits
from pillarbox.delivery.site_scheduler import Site, SiteScheduler


def window() -> CopyWindow:
    """The copies of an engine for which there are always more to make."""

    async def make(most: int, _held: object) -> Sequence[Item]:
        return [waiting_item("quay.example", is_copy=True) for _ in range(most)]

    def take(items: Sequence[Item]) -> None:
        made.held += len(items)

    made = CopyWindow(
        copies=BroadcastCopySource(make, cast(Any, None), "SELECT true"),
        claims=cast(ItemClaims, None),
        scheduler=SiteScheduler(lambda destination: Site(destination, SiteLimits(8, 8)), 200),
        pauses=cast(Pauses, SimpleNamespace(cover=lambda *_: False)),
        clock=ManualClock(),
        other_mail=cast(TransactionalActivity, SimpleNamespace(is_here=False)),
        take=take,
        drop=lambda _: None,
        start=lambda: None,
    )
    return made


@pytest.mark.parametrize(("are_due", "held"), [(False, MOST), (True, MOST_NEW - MOST_NEW % AT_ONCE)])
async def test_new_copies_leave_room_for_those_that_are_due(are_due: bool, held: int) -> None:
    copies = window()
    copies.are_due = are_due
    await copies.fill()
    assert copies.held == held
    assert (copies.free > 0) is are_due
