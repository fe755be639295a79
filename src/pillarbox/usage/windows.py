"""Days and months of UTC (conventions section 8)."""

from __future__ import annotations

from datetime import datetime, timedelta
from math import ceil

DAY = timedelta(days=1)


def day_of(instant: datetime) -> datetime:
    """Return the UTC midnight before."""
    return instant.replace(hour=0, minute=0, second=0, microsecond=0)


def month_of(instant: datetime) -> datetime:
    """Return the beginning of the calendar month."""
    return day_of(instant).replace(day=1)


def next_day(instant: datetime) -> datetime:
    return day_of(instant) + DAY


def next_month(instant: datetime) -> datetime:
    return (month_of(instant) + 32 * DAY).replace(day=1)


def seconds_until(end: datetime, now: datetime) -> int:
    """Return the whole seconds until then, rounded up, at least one."""
    return max(1, ceil((end - now).total_seconds()))
