"""Days and months of UTC (conventions section 8)."""

from __future__ import annotations

from datetime import datetime, timedelta
from math import ceil

DAY = timedelta(days=1)


def day_of(at: datetime) -> datetime:
    """The UTC midnight before."""
    return at.replace(hour=0, minute=0, second=0, microsecond=0)


def month_of(at: datetime) -> datetime:
    """The beginning of the calendar month."""
    return day_of(at).replace(day=1)


def next_day(at: datetime) -> datetime:
    return day_of(at) + DAY


def next_month(at: datetime) -> datetime:
    return (month_of(at) + 32 * DAY).replace(day=1)


def seconds_until(end: datetime, now: datetime) -> int:
    """Whole seconds, rounded up, at least one."""
    return max(1, ceil((end - now).total_seconds()))
