"""Which moments a page of a report lies in.

A list is in the order of time, so it is one long row of spans: days, their quarter hours, and in those of
which the metrics have it the ten seconds. How many rows each span has is what the metric counts in it.
Adding these up finds the spans of a page; only they are read."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

DAY, QUARTER, TEN_SECONDS = timedelta(days=1), timedelta(minutes=15), timedelta(seconds=10)


class RowSpan(NamedTuple):
    """Rows of a list in [`start`, `end`): so many, the first at position `base`."""

    start: datetime
    end: datetime
    base: int
    rows: int


class PageWindow(NamedTuple):
    """The positions of a page, from `first` up to but not including `last`."""

    first: int
    last: int


def spans(
    counted: Sequence[tuple[datetime, int]], length: timedelta, window: PageWindow, base: int = 0
) -> list[RowSpan]:
    """Return the spans that the window lies in; `counted` are the rows of each span, ascending, and the first
    one is at `base`."""
    found = []
    for start, rows in counted:
        if base + rows > window.first and base < window.last:
            found.append(RowSpan(start, start + length, base, rows))
        base += rows
    return found


def inside(
    outer: Sequence[RowSpan], counted: Sequence[tuple[datetime, int]], length: timedelta, window: PageWindow
) -> list[RowSpan]:
    """Divide each of the outer spans into shorter ones, one level below."""
    found = []
    at = 0
    for span in outer:
        within = []
        while at < len(counted) and counted[at][0] < span.end:
            if counted[at][0] >= span.start:
                within.append(counted[at])
            at += 1
        found += spans(within, length, window, span.base)
    return found
