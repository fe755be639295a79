"""Instants as the wire writes and reads them (conventions section 11).

Two styles go out, one grammar comes in. All three are on the path of every request, so they lean on
the C code of `datetime` and on one linear pattern.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone
from typing import Annotated

from msgspec import Meta

DatabaseTime = Annotated[
    str,
    Meta(pattern=r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{6}\+00$", examples=["2026-10-03 08:00:00.000000+00"]),
]
"""An instant in an answer, in the style of the database."""

IsoTime = Annotated[
    str, Meta(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$", examples=["2026-10-03T08:00:00.000Z"])
]
"""An instant in an answer, by ISO 8601."""

EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)
LONGEST = 40

_INSTANT = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})"
    r"(?:[Tt ]([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,9}))?)?"
    r"(?:[Zz]|([+-])([0-9]{2})(?::([0-9]{2}))?)?)?"
)
_FORM = "It must be an ISO 8601 date and time, for example `2026-10-03T08:00:00Z`."


def database_style(instant: datetime) -> str:
    """Return the instant as `2026-10-03 08:00:00.000000+00`; `instant` must be aware."""
    return _utc(instant).isoformat(" ", "microseconds")[:-3]


def iso_style(instant: datetime) -> str:
    """Return the instant as `2026-10-03T08:00:00.000Z`, truncated to milliseconds; `instant` must
    be aware."""
    return _utc(instant).isoformat("T", "milliseconds")[:-6] + "Z"


def parse_instant(text: str, *, date_only: bool = False) -> datetime:
    """Return the instant that `text` names, in UTC and cut to microseconds. A text without an offset is UTC.

    A date alone is 00:00 UTC where `date_only` allows it. ValueError says in one sentence what is wrong.
    """
    match = _INSTANT.fullmatch(text) if len(text) <= LONGEST else None
    if match is None:
        raise ValueError(_FORM)
    year, month, day, hour, minute, second, fraction, sign, ahead, ahead_minutes = match.groups()
    if hour is None and not date_only:
        raise ValueError(_FORM)
    try:
        local = datetime(
            int(year),
            int(month),
            int(day),
            int(hour or 0),
            int(minute or 0),
            int(second or 0),
            int(fraction[:6].ljust(6, "0")) if fraction else 0,
            UTC,
        )
        instant = local if sign is None else _shifted(local, sign, ahead, ahead_minutes)
    except (ValueError, OverflowError):
        raise ValueError("There is no such date or time.") from None
    if instant < EARLIEST:
        raise ValueError("The year must be between 1970 and 9999.")
    return instant


def _utc(instant: datetime) -> datetime:
    if instant.tzinfo is UTC:
        return instant
    if instant.tzinfo is None:
        raise ValueError("an instant without a zone has no wire form")
    return instant.astimezone(UTC)


def _shifted(local: datetime, sign: str, hours: str, minutes: str | None) -> datetime:
    """Return the instant of a wall time with an offset; raise ValueError when the offset is none."""
    if minutes is not None and minutes > "59":
        raise ValueError("an offset has at most 59 minutes")
    offset = timedelta(hours=int(hours), minutes=int(minutes or 0))
    return local.replace(tzinfo=timezone(-offset if sign == "-" else offset)).astimezone(UTC)
