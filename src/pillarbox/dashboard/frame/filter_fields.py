"""Filters that several lists have: days in the reader's zone, and the cursor of the next page."""

from __future__ import annotations

from datetime import datetime, timedelta, tzinfo
from typing import Final, NamedTuple
from uuid import UUID

from pillarbox.dashboard.frame.times import zone
from pillarbox.dashboard.frame.visit import Visit
from pillarbox.dashboard.texts import t
from pillarbox.kernel.wire.problems import Invalid
from pillarbox.kernel.wire.uuids import well_formed

FIRST_YEAR: Final = 1971
LAST_YEAR: Final = 9000


class DayRange(NamedTuple):
    """The first instant of a range of days, and the first one behind it; None where it is open."""

    since: datetime | None
    until: datetime | None


def day_range(since: str | None, until: str | None) -> DayRange:
    """Return the range of two days that are both inside; raises Invalid for what is no date."""
    last = day_of(until, zone())
    return DayRange(day_of(since, zone()), None if last is None else last + timedelta(days=1))


def day_of(text: str | None, reader_zone: tzinfo) -> datetime | None:
    """Return the beginning of a day, None for an empty text; raises Invalid for what is no date."""
    if not text:
        return None
    try:
        day = datetime.strptime(text[:20], "%Y-%m-%d")
    except ValueError:
        raise Invalid(t("parts.no_date", text=text[:20])) from None
    if not FIRST_YEAR <= day.year <= LAST_YEAR:
        raise Invalid(t("parts.no_date", text=text[:20]))
    return day.replace(tzinfo=reader_zone)


def cursor_of(visit: Visit) -> UUID | None:
    """Return the id behind which the page begins; None where the address names none."""
    after = visit.request.query.text("after")
    return UUID(after) if after and well_formed(after) else None
