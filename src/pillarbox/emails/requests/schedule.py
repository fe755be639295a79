"""When to send: the grammar of `scheduled_at` and of `expires_in` (emails.md 1.5 and 5.3).

A text is understood once, at acceptance, and becomes an instant. The forms, tried in this order:

    ISO 8601      2026-10-05T09:00:00+02:00, 2026-10-05 (00:00 UTC)
    now
    relative      in 1 hour 30 minutes, in half an hour, two days from now
    day and time  tomorrow at 9am, next friday 15:00 CET, noon, October 5, 2026 at 9:30 pm Europe/Berlin

A day word stands for one date, or for two when the contract says "the next one": the first that is
still ahead counts. A wall time that a clock change skips is shifted forward; of one that occurs twice the
first counts (`fold=0` of the standard library is exactly that).
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo, available_timezones

from pillarbox.kernel.wire.instants import parse_instant

MOST_AHEAD = timedelta(days=30)
MOST_BEHIND = timedelta(seconds=60)
LONGEST = 100
FIRST_YEAR = 1970
LONGEST_SHARE = timedelta(hours=48)

UNITS = {
    "seconds": ("s", "sec", "secs", "second", "seconds"),
    "minutes": ("m", "min", "mins", "minute", "minutes"),
    "hours": ("h", "hr", "hrs", "hour", "hours"),
    "days": ("d", "day", "days"),
    "weeks": ("w", "week", "weeks"),
    "months": ("month", "months"),
}
EXPIRY_UNITS = ("seconds", "minutes", "hours", "days")
NUMBERS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
WEEKDAYS = (
    ("monday", "mon"),
    ("tuesday", "tue", "tues"),
    ("wednesday", "wed"),
    ("thursday", "thu", "thur", "thurs"),
    ("friday", "fri"),
    ("saturday", "sat"),
    ("sunday", "sun"),
)
MONTHS = (
    ("january", "jan"),
    ("february", "feb"),
    ("march", "mar"),
    ("april", "apr"),
    ("may",),
    ("june", "jun"),
    ("july", "jul"),
    ("august", "aug"),
    ("september", "sep", "sept"),
    ("october", "oct"),
    ("november", "nov"),
    ("december", "dec"),
)
REGIONS = {
    "et": "america/new_york",
    "ct": "america/chicago",
    "mt": "america/denver",
    "pt": "america/los_angeles",
}
OFFSETS = {
    "utc": 0, "gmt": 0, "z": 0, "bst": 1, "cet": 1, "cest": 2,
    "est": -5, "edt": -4, "cst": -6, "cdt": -5, "mst": -7, "mdt": -6, "pst": -8, "pdt": -7,
}  # fmt: skip
"""A short name is the offset that it says, the year round; `ET` and IANA names follow their clocks."""

TONIGHT = time(20)
NAMED_TIMES = {"noon": time(12), "midnight": time(0)}

NOT_UNDERSTOOD = (
    "It must be an ISO 8601 date and time, or a time such as `in 1 hour` or `tomorrow at 9am UTC`."
)
TOO_FAR = "It must be at most 30 days ahead."
TOO_OLD = "It must not be in the past."
BAD_EXPIRY = "It must be a duration such as `10m`, `2 hours` or `1h 30m`, of at most 48 hours."

_UNIT_OF = {word: unit for unit, words in UNITS.items() for word in words}
_NUMBER_OF = {"a": 1, "an": 1} | {word: value for value, word in enumerate(NUMBERS, 1)}
_WEEKDAY_OF = {word: index for index, words in enumerate(WEEKDAYS) for word in words}
_MONTH_OF = {word: number for number, words in enumerate(MONTHS, 1) for word in words}

_AMOUNT = re.compile(
    rf"(?:(half an hour)|(?:([0-9]{{1,4}}) ?|({'|'.join(_NUMBER_OF)}) )({'|'.join(_UNIT_OF)}))(?![a-z])"
    r"(?: and | ?)"
)
_EXPIRY = re.compile(r"([0-9]{1,6}) ?([a-z]+) ?")
_TIME = re.compile(r"([0-9]{1,2})(?::([0-9]{2})(?::([0-9]{2}))?)?(?: ?([ap])m)?")
_TIME_WITH_OFFSET = re.compile(r"([0-9]{1,2}:[0-9:]+|[0-9:]+[ap]m)(z|[+-][0-9]{2}(?::[0-9]{2})?)")
_OFFSET = re.compile(r"([+-])([0-9]{2})(?::([0-5][0-9]))?")
_DATE = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
_ORDINAL = re.compile(r"([0-9]{1,2})(?:st|nd|rd|th)?")


class ScheduleError(ValueError):
    """The text names no time that can be used; `reason` is a sentence for the caller."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class DayPhrase:
    """The dates that a day phrase may mean, the nearest first, and its own time when none is given."""

    dates: tuple[date, ...]
    default: time | None = None


def parse_schedule(text: str, now: datetime) -> datetime:
    """Return the instant in UTC at which to send; raise ScheduleError.

    At most 30 days ahead. What lies up to a minute back means now.
    """
    now = now.astimezone(UTC)
    try:
        instant = _instant(text, now)
    except OverflowError:
        raise ScheduleError(TOO_FAR) from None
    if instant is None:
        raise ScheduleError(NOT_UNDERSTOOD)
    if instant - now > MOST_AHEAD:
        raise ScheduleError(TOO_FAR)
    if now - instant > MOST_BEHIND:
        raise ScheduleError(TOO_OLD)
    return max(instant, now)


def parse_expiry(text: str) -> timedelta:
    """Return how long a share link holds: more than nothing, at most 48 hours; raise ScheduleError."""
    rest = " ".join(_words(text))
    total, at = timedelta(), 0
    while match := _EXPIRY.match(rest, at):
        unit = _UNIT_OF.get(match[2])
        if unit not in EXPIRY_UNITS:
            break
        total += timedelta(**{unit: int(match[1])})
        at = match.end()
    if at < len(rest) or not timedelta() < total <= LONGEST_SHARE:
        raise ScheduleError(BAD_EXPIRY)
    return total


def _words(text: str) -> list[str]:
    """Return the words in lower case, none when the text is too long to be a time or not ASCII (API-09)."""
    if len(text) > LONGEST or not text.isascii():
        return []
    return text.lower().split()


def _instant(text: str, now: datetime) -> datetime | None:
    words = _words(text.replace(",", " "))
    if not words:
        return None
    try:
        return parse_instant(text.strip(), date_only=True)
    except ValueError:
        pass
    if words == ["now"]:
        return now
    if words[0] == "in":
        return _after(now, words[1:])
    if words[-2:] == ["from", "now"]:
        return _after(now, words[:-2])
    return _day_and_time(words, now)


def _after(now: datetime, words: Sequence[str]) -> datetime | None:
    """Return `now` plus the amounts that the words name; months keep the date and time of day in UTC."""
    text, at = " ".join(words), 0
    months, span = 0, timedelta()
    while match := _AMOUNT.match(text, at):
        half, digits, word, unit = match.groups()
        count = int(digits) if digits else _NUMBER_OF.get(word, 0)
        if half:
            span += timedelta(minutes=30)
        elif count == 0:
            return None
        elif _UNIT_OF[unit] == "months":
            months += count
        else:
            span += timedelta(**{_UNIT_OF[unit]: count})
        at = match.end()
    if at == 0 or at < len(text):
        return None
    return datetime.combine(_months_later(now.date(), months), now.timetz()) + span


def _day_and_time(words: list[str], now: datetime) -> datetime | None:
    """Return the instant of a day phrase and a time phrase, in either order, each of which may be missing."""
    words, zone = _without_zone(words)
    local = now.astimezone(zone)
    for cut in range(len(words) + 1):
        for day_words, time_words in ((words[:cut], words[cut:]), (words[cut:], words[:cut])):
            day, clock = _day(day_words, local.date()), _time(time_words)
            if (day or not day_words) and (clock is not None or not time_words):
                return _first_ahead(day, clock, local)
    return None


def _first_ahead(day: DayPhrase | None, clock: time | None, local: datetime) -> datetime:
    """Return the first meaning that is still ahead, else the last; a time alone means today or tomorrow."""
    today = local.date()
    dates = day.dates if day else (today, today + timedelta(days=1))
    if clock is None:
        clock = day.default if day and day.default is not None else local.time()
    instants = [datetime.combine(each, clock, local.tzinfo).astimezone(UTC) for each in dates]
    return next((instant for instant in instants if instant > local), instants[-1])


def _day(words: Sequence[str], today: date) -> DayPhrase | None:
    if words[:1] == ["on"]:
        words = words[1:]
    match words:
        case ["today"]:
            return DayPhrase((today,))
        case ["tonight"]:
            return DayPhrase((today,), TONIGHT)
        case ["tomorrow"]:
            return DayPhrase((today + timedelta(days=1),))
        case ["next", "week"]:
            return DayPhrase((today + timedelta(days=7),))
        case ["next", "month"]:
            return DayPhrase((_months_later(today, 1),))
        case ["next", name] if name in _WEEKDAY_OF:
            monday = today - timedelta(days=today.weekday())
            return DayPhrase((monday + timedelta(days=7 + _WEEKDAY_OF[name]),))
        case [name] | ["this", name] if name in _WEEKDAY_OF:
            nearest = today + timedelta(days=(_WEEKDAY_OF[name] - today.weekday()) % 7)
            return DayPhrase((nearest, nearest + timedelta(days=7)))
        case [written] if parts := _DATE.fullmatch(written):
            return _dated(int(parts[1]), int(parts[2]), int(parts[3]), time(0))
        case [month, day, *year] if month in _MONTH_OF:
            return _calendar_day(month, day, year, today)
        case [day, month, *year] if month in _MONTH_OF:
            return _calendar_day(month, day, year, today)
    return None


def _calendar_day(month: str, day: str, year: Sequence[str], today: date) -> DayPhrase | None:
    """Return the day that `October 5` or `5 October` names; without a year the next one, today included."""
    ordinal = _ORDINAL.fullmatch(day)
    if ordinal is None or len(year) > 1 or (year and not re.fullmatch("[0-9]{4}", year[0])):
        return None
    wanted = (_MONTH_OF[month], int(ordinal[1]))
    if year:
        return _dated(int(year[0]), *wanted)
    return _dated(today.year + (wanted < (today.month, today.day)), *wanted)


def _dated(year: int, month: int, day: int, default: time | None = None) -> DayPhrase | None:
    if not (year >= FIRST_YEAR and 1 <= month <= 12 and 1 <= day <= calendar.monthrange(year, month)[1]):
        return None
    return DayPhrase((date(year, month, day),), default)


def _time(words: Sequence[str]) -> time | None:
    if words[:1] == ["at"]:
        words = words[1:]
    text = " ".join(words)
    if text in NAMED_TIMES:
        return NAMED_TIMES[text]
    match = _TIME.fullmatch(text)
    if match is None or not (match[2] or match[4]):
        return None
    hour = int(match[1])
    if match[4]:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if match[4] == "p" else 0)
    minute, second = int(match[2] or 0), int(match[3] or 0)
    return time(hour, minute, second) if hour < 24 and minute < 60 and second < 60 else None


def _months_later(day: date, months: int) -> date:
    """Return the same day of a later month, or its last day."""
    years, month = divmod(day.month - 1 + months, 12)
    if day.year + years > 9999:
        raise OverflowError
    last = calendar.monthrange(day.year + years, month + 1)[1]
    return date(day.year + years, month + 1, min(day.day, last))


def _without_zone(words: list[str]) -> tuple[list[str], tzinfo]:
    """Return the words before a trailing zone, and the zone; UTC when there is none."""
    attached = _TIME_WITH_OFFSET.fullmatch(words[-1])
    if attached:
        words = [*words[:-1], attached[1], attached[2]]
    zone = _zone(words[-1]) if len(words) > 1 else None
    return (words, UTC) if zone is None else (words[:-1], zone)


def _zone(word: str) -> tzinfo | None:
    if word in OFFSETS:
        return timezone(timedelta(hours=OFFSETS[word]))
    offset = _OFFSET.fullmatch(word)
    if offset:
        span = timedelta(hours=int(offset[2]), minutes=int(offset[3] or 0))
        return timezone(-span if offset[1] == "-" else span) if span < timedelta(days=1) else None
    name = _iana_names().get(REGIONS.get(word, word))
    return ZoneInfo(name) if name else None


@lru_cache(maxsize=1)
def _iana_names() -> dict[str, str]:
    """Return the zone names of the database by their lower-case form."""
    return {name.lower(): name for name in available_timezones() - {"localtime", "Factory"}}
