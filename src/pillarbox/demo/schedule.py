"""The order of what happens in the month, and the hours at which a small shop has customers."""

from __future__ import annotations

import heapq
import itertools
import random
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Final, NamedTuple

Act = Callable[[], Awaitable[object]]

DAYS: Final = 30
"""Days of a month are counted from 0 on; today is this one."""

TUESDAY, THURSDAY = 1, 3

HOURS: Final = (2, 1, 1, 1, 1, 2, 5, 9, 13, 16, 18, 19, 20, 17, 15, 15, 16, 18, 22, 26, 25, 18, 10, 5)
"""How busy each hour of the day is, from midnight on, in UTC."""

WEEKDAYS: Final = (9, 9, 10, 11, 12, 14, 15)
"""Orders of each day of the week, from Monday on."""


class MonthSize(NamedTuple):
    """How many of its last days the month has, and how many contacts there are."""

    days: int = DAYS
    contacts: int = 480


WHOLE: Final = MonthSize()


class SeededRandom(random.Random):
    """Chance that is the same each time: every demo has the same month. Nothing secret comes of it."""


class Agenda:
    """Acts that are still to come. An act may add others."""

    def __init__(self, start: datetime) -> None:
        self._start = start
        self._acts: list[tuple[datetime, int, Act]] = []
        self._order = itertools.count()

    def add(self, instant: datetime, act: Act) -> None:
        """Do this at an instant; before the month there is nothing to do."""
        if instant < self._start:
            return
        heapq.heappush(self._acts, (instant, next(self._order), act))

    def take(self, until: datetime) -> tuple[datetime, Act] | None:
        """Return the earliest act, with its time; None where none is left before `until`."""
        if not self._acts or self._acts[0][0] >= until:
            return None
        instant, _, act = heapq.heappop(self._acts)
        return instant, act


def busy_instant(chance: SeededRandom, day: datetime) -> datetime:
    """Return an instant of this day (given by its midnight), by how busy its hours are."""
    hour = chance.choices(range(24), HOURS)[0]
    return day + timedelta(hours=hour, seconds=chance.uniform(0, 3600))


def orders_of(chance: SeededRandom, day: datetime) -> int:
    """Return how many orders come in on this day."""
    return max(3, round(chance.gauss(WEEKDAYS[day.weekday()], 2)))


def working_day_after(day: datetime, days: int = 1) -> datetime:
    """Return the midnight of the next day on which parcels leave."""
    found = day + timedelta(days=days)
    while found.weekday() >= 5:
        found += timedelta(days=1)
    return found


def reading_delay(chance: SeededRandom) -> timedelta:
    """Return after how long somebody opens a mail: mostly within the hour, sometimes the next day."""
    return timedelta(
        minutes=2 + chance.expovariate(1 / 40) + (chance.random() < 0.3) * chance.uniform(60, 1500)
    )
