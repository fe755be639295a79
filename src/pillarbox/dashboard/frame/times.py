"""Times and numbers as the reader writes them: their time zone, with UTC beside it, and their language."""

from __future__ import annotations

from contextvars import ContextVar
from datetime import UTC, datetime, tzinfo
from typing import Final
from zoneinfo import ZoneInfo

from pillarbox.dashboard.texts import language
from pillarbox.kernel.wire.problems import Invalid
from pillarbox.metrics.question import zone_name

LONGEST_ZONE: Final = 64
FORMATS: Final = {"en": "%Y-%m-%d %H:%M", "de": "%d.%m.%Y %H:%M"}

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
    return f"{instant_of(value).astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def local_text(value: str | datetime) -> str:
    """Return the instant in the page's zone and language."""
    return instant_of(value).astimezone(_zone.get()).strftime(FORMATS[language()])


def number(value: float) -> str:
    """Return a number with the separators of the page's language."""
    text = f"{value:,}" if isinstance(value, int) else f"{value:,.1f}"
    return text.translate(str.maketrans(",.", ".,")) if language() == "de" else text


def percent(part: float, whole: float, digits: int = 1) -> str:
    """Return a share as a percentage; "–" where there is no whole."""
    if not whole:
        return "–"
    text = f"{100 * part / whole:.{digits}f} %"
    return text.replace(".", ",") if language() == "de" else text


def _zone_of(name: str | None) -> tzinfo:
    """Return the zone of that name, if the API knows it as well."""
    if not name or len(name) > LONGEST_ZONE:
        return UTC
    try:
        return ZoneInfo(zone_name(name))
    except (Invalid, ValueError, OSError, LookupError):
        return UTC
