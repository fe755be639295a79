"""Which rollups make up a stretch of time (architecture 2.11).

Rollups exist for quarter hours, hours and UTC days. A stretch is covered by as few of them as possible:
the inside by days, the edges by hours and quarters, which are added, or taken away from a whole day where
that is shorter. (A day of Kolkata begins at 18:30 UTC: eleven rollups instead of twenty-seven.)
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

FINE, QUARTER, HOUR, DAY = 0, 1, 2, 3
"""Levels of rollups; `FINE` (ten seconds) is kept for recent and for busy quarter hours only."""

PER_HOUR = 4
PER_DAY = 96
UNITS = {QUARTER: 1, HOUR: PER_HOUR, DAY: PER_DAY}
"""How many quarter hours a rollup of each level has."""


class RollupRange(NamedTuple):
    """The rollups of `level` from `start` up to `end`, in quarter hours since 1970; `sign` is 1 or -1."""

    level: int
    start: int
    end: int
    sign: int


def cover(start: int, end: int) -> list[RollupRange]:
    """Return the cheapest sum of rollups that is exactly [start, end); both in quarter hours since 1970."""
    if start >= end:
        return []
    day, last = start // PER_DAY, end // PER_DAY
    head, tail = start % PER_DAY, end % PER_DAY
    if day == last:
        return _moved(_in_a_day(head, tail), day)
    first = day if head == 0 else day + 1
    before = _moved(_in_a_day(head, PER_DAY), day) if head else []
    if head and _cost(_in_a_day(0, head)) + 1 < _cost(before):
        first, before = day, _moved(_negated(_in_a_day(0, head)), day)
    after = _moved(_in_a_day(0, tail), last) if tail else []
    if tail and _cost(_in_a_day(tail, PER_DAY)) + 1 < _cost(after):
        after = _moved(_negated(_in_a_day(tail, PER_DAY)), last)
        last += 1
    inside = [RollupRange(DAY, first * PER_DAY, last * PER_DAY, 1)] if first < last else []
    return [*before, *inside, *after]


@cache
def _in_a_day(start: int, end: int) -> tuple[RollupRange, ...]:
    """Return the cheapest cover of [start, end) inside one day, in quarter hours of that day."""
    if start == 0 and end == PER_DAY:
        return (RollupRange(DAY, 0, PER_DAY, 1),)
    plain = _by_hours(start, end)
    if end - start < PER_DAY // 2:
        return plain
    around = (
        RollupRange(DAY, 0, PER_DAY, 1),
        *_negated(_by_hours(0, start)),
        *_negated(_by_hours(end, PER_DAY)),
    )
    return min(plain, around, key=_cost)


def _by_hours(start: int, end: int) -> tuple[RollupRange, ...]:
    """Return hours inside and quarters at both edges, added or taken away."""
    if start >= end:
        return ()
    options: list[tuple[RollupRange, ...]] = [(RollupRange(QUARTER, start, end, 1),)]
    for low in _hours_beside(start):
        for high in _hours_beside(end):
            if low < high:
                options.append(
                    (RollupRange(HOUR, low, high, 1), *_quarters(start, low), *_quarters(high, end))
                )
    return min(options, key=_cost)


def _hours_beside(index: int) -> tuple[int, ...]:
    """Return the full hours on both sides of a quarter, or the one that it is."""
    low = index - index % PER_HOUR
    return (low,) if low == index else (low, low + PER_HOUR)


def _quarters(start: int, end: int) -> tuple[RollupRange, ...]:
    """Return the quarters from `start` to `end`: added, or taken away where they run backwards."""
    if start == end:
        return ()
    return (RollupRange(QUARTER, start, end, 1),) if start < end else (RollupRange(QUARTER, end, start, -1),)


def _negated(parts: Iterable[RollupRange]) -> tuple[RollupRange, ...]:
    return tuple(part._replace(sign=-part.sign) for part in parts)


def _moved(parts: Iterable[RollupRange], day: int) -> list[RollupRange]:
    base = day * PER_DAY
    return [part._replace(start=part.start + base, end=part.end + base) for part in parts]


def _cost(parts: Iterable[RollupRange]) -> int:
    """Return how many rollups of one domain are read."""
    return sum((part.end - part.start) // UNITS[part.level] for part in parts)
