"""Copies of broadcasts in an engine: made when there is room for them, in a window of their own, so that they
never take the place of other mail."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Sequence
from typing import Final

from pillarbox.delivery.copies import BroadcastCopySource
from pillarbox.delivery.items import EVERY_TEAM, Item
from pillarbox.delivery.other_mail import TransactionalActivity
from pillarbox.delivery.queue.claims import ItemClaims
from pillarbox.delivery.queue.pausing import Pauses
from pillarbox.delivery.queue.pausing_queries import EVERYWHERE
from pillarbox.delivery.site_scheduler import COPIES, SiteScheduler
from pillarbox.kernel.clock import Clock

LATE: Final = 0.003
"""Seconds that the event loop may be late by: what else this process does comes first."""

SLOWEST: Final = 25.0
"""Copies a second that are started however late the loop is."""

FASTER: Final = 25.0
"""How many more a second after each second in which the loop was never late."""

SLOWER: Final = 0.75
"""The part of them that is left each time that it was."""


class CopyRate:
    """Copies a second, as many as leave the event loop punctual (docs/decisions/0076)."""

    def __init__(self) -> None:
        self._rate = SLOWEST

    def copies(self, passed: float, planned: float, *, all_started: bool = True) -> float:
        """Return how many copies may be started for the seconds that passed, where so many were planned. A
        rate that was not reached, since not all were started that might be, says nothing and stays."""
        if passed - planned > LATE:
            self._rate = max(SLOWEST, self._rate * SLOWER)
        elif all_started:
            self._rate += FASTER * planned
        return self._rate * passed


MOST: Final = 500
"""Copies in memory, besides the other items."""

MOST_NEW: Final = MOST // 4
"""Copies in memory up to which new ones are made while there are due ones in the queue: those of a process
that died do not wait until the broadcast is over."""

AT_ONCE, FEW = 100, 25
"""Copies that are made in one transaction; fewer while there is other mail."""

STUCK_AFTER: Final = 2.0

LOOK_EVERY: Final = 0.02


class CopyWindow:
    """The copies that an engine holds. `take` gets those that are made, `drop` those that are given back."""

    def __init__(
        self,
        *,
        copies: BroadcastCopySource | None,
        claims: ItemClaims,
        scheduler: SiteScheduler,
        pauses: Pauses,
        clock: Clock,
        other_mail: TransactionalActivity,
        take: Callable[[Sequence[Item]], None],
        drop: Callable[[Item], None],
        start: Callable[[], None],
    ) -> None:
        self._copies = copies
        self._claims = claims
        self._scheduler = scheduler
        self._pauses = pauses
        self._clock = clock
        self._other_mail = other_mail
        self._take = take
        self._drop = drop
        self._start = start
        self._making = asyncio.Lock()
        self._is_stopped = False
        self._has_more = False
        self._ended = 0
        self._full: tuple[float, int] | None = None
        """Since when the window is full, and how many copies had left it then."""

        self.room = asyncio.Event()
        self.held = 0
        self.are_due = False
        """Whether copies that could be sent are due in the queue."""

    @property
    def _room(self) -> int:
        """For how many new ones there is room."""
        return (MOST_NEW if self.are_due else MOST) - self.held

    @property
    def free(self) -> int:
        """For how many more there is room."""
        return MOST - self.held

    def part(self, due: int) -> int:
        """Return how many may wait for one destination, where copies for `due` destinations are due."""
        return MOST // max(2, due, len(self._scheduler.busy(COPIES)))

    def note_end(self) -> None:
        """Note that a copy has left the window."""
        self._ended += 1
        if self._has_more and self._room >= AT_ONCE:
            self.room.set()

    async def fill(self) -> None:
        """Make copies while there is room for them and more are wanted."""
        while await self.make():
            pass

    async def make(self) -> int:
        """Make some copies; returns how many. Those for a site that is out of reach wait for it in the
        queue."""
        async with self._making:
            if self._copies is None or self._is_stopped or self._is_held():
                return 0
            if self.free < AT_ONCE and self._is_stuck():
                await self._give_back_surplus()
            if self._room < AT_ONCE:
                return 0
            self._full = None
            most = FEW if self._other_mail.is_here else AT_ONCE
            made = await self._copies.make(most, lambda team: self._pauses.cover(team, EVERYWHERE))
            self._has_more = bool(made)
            now = self._clock.boottime()
            ready = [item for item in made if not (self._is_stopped or self._scheduler.is_closed(item, now))]
            self._take(ready)
            if len(ready) < len(made):
                kept = {item.key for item in ready}
                await self._claims.give_back_soon([item for item in made if item.key not in kept])
            return len(made)

    async def limit_copies(self) -> None:
        """Start so many copies a second beside other mail as leave the event loop punctual."""
        loop, rate = asyncio.get_running_loop(), CopyRate()
        while True:
            before = loop.time()
            await asyncio.sleep(LOOK_EVERY)
            passed = loop.time() - before
            is_alone, all_started = not self._other_mail.is_here, self._scheduler.copies_to_start < 1
            self._allow(math.inf if is_alone else rate.copies(passed, LOOK_EVERY, all_started=all_started))

    def _allow(self, more: float) -> None:
        """Let so many more copies be started; what was left before counts up to one copy."""
        scheduler = self._scheduler
        was = scheduler.copies_to_start
        scheduler.copies_to_start = more + (min(was, 1.0) if math.isfinite(was) else 0.0)
        if was < 1 <= scheduler.copies_to_start:
            self._start()

    async def stop(self, seconds: float) -> None:
        """Make no more; what is being committed is waited for, and given back."""
        self._is_stopped = True
        try:
            async with asyncio.timeout(seconds), self._making:
                pass
        except TimeoutError:
            pass

    def _is_held(self) -> bool:
        """Return whether nothing can be sent now, because of the operator or of the relay."""
        if self._pauses.cover(EVERY_TEAM, EVERYWHERE):
            return True
        return self._scheduler.is_refused(self._clock.boottime())

    def _is_stuck(self) -> bool:
        """Return whether the window has been full for a while, and hardly anything has left it."""
        now = self._clock.boottime()
        if self._full is None or self._ended - self._full[1] >= AT_ONCE:
            self._full = now, self._ended
        return now - self._full[0] >= STUCK_AFTER

    async def _give_back_surplus(self) -> None:
        """Give back the surplus, so that no destination that takes no copies keeps out the others."""
        self._full = None
        surplus = self._scheduler.remove_surplus(self.part(0), COPIES)
        for item in surplus:
            self._drop(item)
        await self._claims.give_back_soon(surplus)
