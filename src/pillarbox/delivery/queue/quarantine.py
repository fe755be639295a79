"""Items that crash their process (DUR-13).

A process that dies may have had hundreds of items in memory, and one of them may be the
cause. The cause is found step by step, at no cost for other mail:

1. The first time, all items of the dead process are free again; those that it may have sent are `uncertain`.
2. From then on the begin of each of their attempts is written down (`begun`), until there is an outcome.
3. An item that has ended a process in the middle of such an attempt goes out alone: no other such item of
   this process runs beside it.
4. One that does so again waits five minutes: processes may be dying for reasons of their own, every few
   seconds, and each death meets somebody's attempt.
5. One that does so for the third time is quarantined: nothing claims it, `pillarbox queue` shows it with the
   reason, and `pillarbox queue retry` lets it go once more.

An item whose email cannot even be read from the database is quarantined at once, so that it does not
block those behind it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

from pillarbox.delivery import prometheus
from pillarbox.delivery.items import QUARANTINED, Item
from pillarbox.delivery.queries import FreedItem, Quarantine
from pillarbox.kernel.observability.log import get
from pillarbox.kernel.work.lone_attempts import MOST_BEGUN, PAUSES

log = get("delivery")

LOST_HOLDER = "The process that held it ended without an outcome; it goes out once more."
FATAL = "Three processes ended in the middle of delivering it, so it was put aside."
UNREADABLE = "It cannot be read back from the database (an error of our own), so it was put aside."

RULE = Quarantine(after=MOST_BEGUN, until=QUARANTINED, reason=FATAL, lost=LOST_HOLDER, pauses=PAUSES)
"""Three attempts that were written down, with the pauses of `lone_attempts`. The loss before them, which
began the writing, proves nothing: the item may only have been in memory."""


def report(freed: Sequence[FreedItem]) -> None:
    """Count and log what was quarantined."""
    for item in freed:
        if item.quarantined:
            prometheus.QUARANTINED.add()
            log.error("delivery.quarantined", email=item.email_id, grp=item.grp)


class UncertainAttempts:
    """Lets items that have lost a holder go out: written down, and from the second loss on one by one."""

    def __init__(self, begin: Callable[[Item], Awaitable[bool]]) -> None:
        self._begin = begin
        self._alone = asyncio.Lock()

    @asynccontextmanager
    async def turn(self, item: Item) -> AsyncIterator[bool]:
        """Wait for the time in which an uncertain item may be sent; yield False when it is no longer ours."""
        if not item.begun:
            yield await self._begin(item)
            return
        async with self._alone:
            yield await self._begin(item)
