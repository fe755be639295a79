"""When an item is tried again (contract decision 11)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

GAPS = (
    timedelta(minutes=1),
    timedelta(minutes=5),
    timedelta(minutes=15),
    timedelta(minutes=30),
    timedelta(hours=1),
    timedelta(hours=2),
    timedelta(hours=4),
)
"""The waits after the first, second, … failed attempt; the last one repeats."""

JITTER = 0.1


def next_attempt(
    tries: int, first: datetime, now: datetime, window: timedelta, chance: Callable[[], float]
) -> datetime | None:
    """Return when to try again after failed attempt number `tries` (from 1), or None when the window is over.

    `first` is the time of the first attempt, `chance` gives a number in [0, 1). An attempt that would
    fall behind the end of the window is not waited for: the fate is known now.
    """
    gap = GAPS[min(tries, len(GAPS)) - 1]
    due = now + gap * (1 + JITTER * (2 * chance() - 1))
    return due if due < first + window else None
