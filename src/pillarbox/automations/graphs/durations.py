"""Lengths of time as people write them: `30 minutes`, `1 day 12 hours`, `90m` (automations.md 3.1)."""

from __future__ import annotations

import re
from datetime import timedelta
from decimal import Decimal
from typing import Final

from pillarbox.automations.graphs.graph import LONGEST, Duration
from pillarbox.kernel.wire.json_members import Path
from pillarbox.kernel.wire.problems import InvalidField

MOST_CHARACTERS: Final = 100
MICROSECOND: Final = timedelta(microseconds=1)

_SECONDS: Final = {"second": 1, "minute": 60, "hour": 3600, "day": 86_400, "week": 604_800}
_WORDS: Final = {
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), "second"),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), "minute"),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), "hour"),
    **dict.fromkeys(("d", "day", "days"), "day"),
    **dict.fromkeys(("w", "week", "weeks"), "week"),
}
_PART: Final = re.compile(r"[ \t]*([0-9]+(?:\.[0-9]+)?)[ \t]*([A-Za-z]+)[ \t]*", re.ASCII)

FORM: Final = "Use a text such as `30 minutes`, `1 day 12 hours` or `90m`."
POSITIVE: Final = "It must be longer than zero."
TOO_LONG: Final = "Use at most 30 days."


def duration(value: object, path: Path) -> Duration:
    """Return the duration that a text gives; 422 for one that gives none, for zero, and for more than 30
    days."""
    if not isinstance(value, str):
        raise InvalidField(path, "It must be a string.")
    text = value.strip()
    if len(text) > MOST_CHARACTERS:
        raise InvalidField(path, f"Use at most {MOST_CHARACTERS} characters.")
    seconds, end = Decimal(0), 0
    while end < len(text):
        part = _PART.match(text, end)
        unit = None if part is None else _WORDS.get(part[2].lower())
        if part is None or unit is None:
            raise InvalidField(path, FORM)
        number = Decimal(part[1])
        if not number:
            raise InvalidField(path, POSITIVE)
        seconds, end = seconds + number * _SECONDS[unit], part.end()
    return Duration(_length(seconds, path), text)


def of_seconds(value: object, path: Path) -> Duration:
    """Return the duration of the old form, a number of seconds; it is shown in the largest unit that makes it
    whole."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise InvalidField(path, "It must be a number.")
    if value > LONGEST.total_seconds():
        raise InvalidField(path, TOO_LONG)
    length = _length(Decimal(str(value)), path)
    # What is shown is what is kept: it has to be read again from there.
    seconds = Decimal(length // MICROSECOND) / 1_000_000
    unit = next((word for word, size in reversed(_SECONDS.items()) if seconds % size == 0), "second")
    count = seconds / _SECONDS[unit]
    return Duration(length, f"{count.normalize():f} {unit}{'' if count == 1 else 's'}")


def _length(seconds: Decimal, path: Path) -> timedelta:
    if seconds <= 0:
        raise InvalidField(path, POSITIVE)
    if seconds > int(LONGEST.total_seconds()):
        raise InvalidField(path, TOO_LONG)
    return max(int(seconds * 1_000_000) * MICROSECOND, MICROSECOND)
