"""Work that may end its process (DUR-13): the rule that jobs and steps of automations have in common.
Deliveries have the same one (`delivery.queue.quarantine`).

A process that dies may have had much work at hand, and most of it is not to blame. So the first loss of a
holder proves nothing. From then on the begin of each attempt is written down (`begun`), until there is an
outcome.
Work that has ended a process in the middle of such an attempt runs alone: no other such work of its process
is beside it. After the second time it waits for `PAUSES`, as processes may be dying for reasons of their own.
After the third time it is given up.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

MOST_BEGUN: Final = 3
"""Attempts that were written down, after which work that ended all their processes is given up."""

PAUSES: Final = (timedelta(0), timedelta(0), timedelta(minutes=5), timedelta(0))
"""How long work waits that lost its holder, by the attempts that were written down."""

DUE_AFTER_LOSS: Final = "greatest(w.due_at, $4::timestamptz + coalesce(($5::interval[])[w.begun + 1], '0'))"
"""When work `w` that lost its holder at $4 is due again, by the pauses $5 (`lease_table`, `on_loss`)."""

ALONE_FROM: Final = 2
"""The written attempt from which on work is alone."""

BUSY_GAP: Final = timedelta(seconds=5)
"""When work that is to be alone is looked at again, where other such work is at it."""


@dataclass(slots=True)
class LoneAttempts:
    """Of one process: what is at work alone now."""

    _holder: Hashable = None

    def take(self, key: Hashable) -> bool:
        """Begin alone; False where other work does."""
        if self._holder is not None and self._holder != key:
            return False
        self._holder = key
        return True

    def release(self, key: Hashable) -> None:
        """Release the place of the work, which is over, if it was the one that is alone."""
        if self._holder == key:
            self._holder = None
