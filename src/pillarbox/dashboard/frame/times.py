"""Times and numbers as the reader writes them: their time zone, with UTC beside it, and their language."""

from __future__ import annotations

from contextvars import ContextVar
from datetime import UTC, datetime, tzinfo
from typing import Final
from zoneinfo import ZoneInfo

from pillarbox.dashboard.texts.number_format import current, number
from pillarbox.kernel.wire.problems import Invalid
from pillarbox.metrics.question import zone_name

LONGEST_ZONE: Final = 64

_zone: ContextVar[tzinfo] = ContextVar("zone", default=UTC)


def use_zone(name: str | None) -> None:
    """Set the time zone of the page by its name in the IANA database; UTC where there is none of the name."""
    _zone.set(_zone_of(name))


def zone() -> tzinfo:
    """Return the time zone of the page."""
    return _zone.get()


def instant_of(value: str | datetime) -> datetime:
    """Return the instant of a time on the wire; one without a zone is UTC."""
    if isinstance(value, str):
        text = value.strip().replace(" ", "T")
        if text.endswith("+00"):
            text += ":00"
        value = datetime.fromisoformat(text)
    return value if value.tzinfo else value.replace(tzinfo=UTC)


def utc(value: str | datetime) -> str:
    """Return the instant for the attribute `datetime`."""
    return instant_of(value).astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def utc_text(value: str | datetime) -> str:
    """Return the instant in UTC, as it stands beside the local one."""
    return instant_of(value).astimezone(UTC).strftime(f"{current().time}:%S UTC")


def local_text(value: str | datetime) -> str:
    """Return the instant in the page's zone and language."""
    return instant_of(value).astimezone(_zone.get()).strftime(current().time)


def local_day(value: str | datetime) -> str:
    """Return the day of an instant in the page's zone and language."""
    return instant_of(value).astimezone(_zone.get()).strftime(current().day)


def period_text(period: str) -> str:
    """Return the beginning of a period, a day or a time as the API writes it, in the page's language."""
    try:
        beginning = datetime.fromisoformat(period)
    except ValueError:
        return period
    return beginning.strftime(current().time if "T" in period else current().day)


def percent(part: float, whole: float, digits: int = 1) -> str:
    """Return a share as a percentage; "–" where there is no whole."""
    return f"{number(100 * part / whole, digits)}\N{NO-BREAK SPACE}%" if whole else "–"


def _zone_of(name: str | None) -> tzinfo:
    """Return the zone of that name, if the API knows it as well."""
    if not name or len(name) > LONGEST_ZONE:
        return UTC
    try:
        return ZoneInfo(zone_name(name))
    except (Invalid, ValueError, OSError, LookupError):
        return UTC
