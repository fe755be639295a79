"""Cutting a range of time into the hours, days, weeks and months of a zone (metrics.md section 3).

Every boundary is an instant on a quarter hour: no zone in use since 1972 is set otherwise, and the few
older ones are cut to the quarter hour below. A period that does not exist in the zone (a skipped day, a
skipped hour) is not there; an hour that the clocks repeat is there twice.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo
from functools import lru_cache, partial

from pillarbox.kernel.wire.instants import iso_style

QUARTER = timedelta(minutes=15)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
LEAP = timedelta(hours=6)
"""Clocks are not set twice within so short a time."""

KNOWN_DAYS = 4096
"""Beginnings of days that are remembered: a month of a hundred zones."""

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

GRANULARITIES = ("hourly", "daily", "weekly", "monthly")
SHORTEST = {
    "hourly": timedelta(minutes=15),
    "daily": timedelta(hours=12),
    "weekly": timedelta(days=6),
    "monthly": timedelta(days=27),
}
"""No period of a zone is shorter, but for a few around a change of its clocks."""


@dataclass(frozen=True, slots=True)
class Period:
    """From `start` up to but not including `end`; `label` names it on the wire."""

    start: datetime
    end: datetime
    label: str


def periods(
    start: datetime, end: datetime, zone: tzinfo, granularity: str, limit: int
) -> list[Period] | None:
    """Return the whole periods that [start, end) touches, in order; None when they are more than `limit`."""
    if start >= end:
        return []
    if (end - start) / limit > 2 * _longest(granularity):
        return None
    found = _hours if granularity == "hourly" else _dates
    touched: list[Period] = []
    for period in found(start, end, zone, granularity):
        touched.append(period)
        if len(touched) > limit:
            return None
    return touched


def _longest(granularity: str) -> timedelta:
    return {"hourly": HOUR, "daily": DAY, "weekly": 7 * DAY, "monthly": 31 * DAY}[granularity]


def _hours(start: datetime, end: datetime, zone: tzinfo, _: str) -> Iterator[Period]:
    """Yield runs of equal local hour and equal offset."""
    for opens, closes, offset in _runs(start - 2 * HOUR, end + 2 * HOUR, zone):
        beneath = (opens + offset - EPOCH) % HOUR
        at = opens
        step = HOUR - beneath
        while at < closes:
            ends = min(at + step, closes)
            if ends > start and at < end:
                yield Period(at, ends, iso_style(at))
            at, step = ends, HOUR


def _runs(start: datetime, end: datetime, zone: tzinfo) -> Iterator[tuple[datetime, datetime, timedelta]]:
    """Yield the stretches of [start, end) in which the clocks of the zone were not set; the first one may
    begin before `start`, at a full local hour."""
    offset = _offset(start, zone)
    opens = start - (start + offset - EPOCH) % HOUR
    at = start
    while at < end:
        ahead = min(at + LEAP, end)
        changed = _offset(ahead, zone)
        if changed != offset:
            turn = _first(at, ahead, partial(_differs, zone, offset))
            yield opens, turn, offset
            opens, offset = turn, changed
        at = ahead
    yield opens, end, offset


def _differs(zone: tzinfo, offset: timedelta, instant: datetime) -> bool:
    return _offset(instant, zone) != offset


def _offset(instant: datetime, zone: tzinfo) -> timedelta:
    """Return the zone's distance to UTC at that instant, cut to quarter hours."""
    exact = instant.astimezone(zone).utcoffset() or timedelta(0)
    return exact - exact % QUARTER


def _first(low: datetime, high: datetime, holds: Callable[[datetime], bool]) -> datetime:
    """Return the first quarter hour after `low` and up to `high` at which `holds` is true; at `high`
    it is."""
    base = low - (low - EPOCH) % QUARTER
    near, far = 0, -(-(high - base) // QUARTER)
    while far - near > 1:
        middle = (near + far) // 2
        if holds(base + middle * QUARTER):
            far = middle
        else:
            near = middle
    return base + far * QUARTER


def _dates(start: datetime, end: datetime, zone: tzinfo, granularity: str) -> Iterator[Period]:
    """Yield days, or weeks from Monday, or months, of the local calendar."""
    day = _floor(start.astimezone(zone).date() - DAY, granularity)
    opens = midnight(day, zone)
    while opens < end:
        following = _next(day, granularity)
        closes = midnight(following, zone)
        if closes > start and closes > opens:
            yield Period(opens, closes, day.isoformat())
        day, opens = following, closes


def _floor(day: date, granularity: str) -> date:
    if granularity == "weekly":
        return day - timedelta(days=day.weekday())
    return day.replace(day=1) if granularity == "monthly" else day


def _next(day: date, granularity: str) -> date:
    if granularity == "monthly":
        return (day.replace(day=28) + timedelta(days=4)).replace(day=1)
    return day + timedelta(days=7 if granularity == "weekly" else 1)


@lru_cache(KNOWN_DAYS)
def midnight(day: date, zone: tzinfo) -> datetime:
    """Return the first quarter hour at which the zone's calendar shows `day` or, where it skips it, a
    later one."""
    wall = datetime(day.year, day.month, day.day, tzinfo=zone)
    exact = wall.astimezone(UTC)
    at = exact - (exact - EPOCH) % QUARTER
    if _date(at - QUARTER, zone) < day <= _date(at, zone):
        return at
    return _first(at - 2 * DAY, at + 2 * DAY, lambda when: _date(when, zone) >= day)


def _date(instant: datetime, zone: tzinfo) -> date:
    return (instant + _offset(instant, zone)).date()


def place(starts: list[datetime], instant: datetime) -> int:
    """Return the index of the period that `instant` lies in; `starts` are the beginnings, in order."""
    return bisect_right(starts, instant) - 1
