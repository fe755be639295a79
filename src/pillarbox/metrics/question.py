"""Reads and checks the question of a request (metrics.md sections 1 and 2).

Everything is checked in the contract's order: the parameters one by one, then what may not be combined, then
the range.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from uuid import UUID
from zoneinfo import ZoneInfo, available_timezones

from pillarbox.kernel.wire.instants import parse_instant
from pillarbox.kernel.wire.problems import Invalid, InvalidParameter
from pillarbox.kernel.wire.query import Query
from pillarbox.kernel.wire.uuids import well_formed
from pillarbox.metrics.definitions import METRICS
from pillarbox.metrics.periods import GRANULARITIES
from pillarbox.timeline.rollups import oldest_day

DIMENSIONS = ("period", "domain", "email", "broadcast")
MOST_IDS = 100
DAY = timedelta(days=1)
USUAL = timedelta(hours=144)
DATE = len("2026-10-03")
NO_ZONES = frozenset({"localtime", "Factory"})
"""Files in the machine's folder of zones that are no zones."""
SHOWN = 60


@dataclass(frozen=True, slots=True)
class RangeBound:
    """A date of the query; a day alone is its first instant in UTC."""

    at: datetime
    day_only: bool


@dataclass(frozen=True, slots=True)
class Range:
    """`start` and `end` as the answer shows them. Events count from `start` up to but not including `until`;
    it is None where the range ends at the present, which needs no edge. `reach` is its end in any case."""

    start: datetime
    end: datetime
    reach: datetime
    until: datetime | None
    empty: bool = False


@dataclass(frozen=True, slots=True)
class MetricsQuery:
    """One request, without its faults."""

    range: Range
    timezone: str
    granularity: str
    metrics: tuple[str, ...]
    dimensions: tuple[str, ...]
    domains: tuple[UUID, ...]
    emails: tuple[UUID, ...]
    broadcasts: tuple[UUID, ...]

    @property
    def zone(self) -> ZoneInfo:
        return ZoneInfo(self.timezone)

    def by(self, dimension: str) -> bool:
        """Return whether rows are distinguished by that dimension."""
        return dimension in self.dimensions


def read(query: Query, now: datetime, retention_days: int) -> MetricsQuery:
    """Return the question in a query; raise 422, which says which parameter is wrong and how."""
    start, end = _edge(query, "start_date"), _edge(query, "end_date")
    timezone = zone_name(query.text("timezone") or "UTC")
    granularity = query.last("granularity")
    if granularity is None:
        granularity = "daily"
    if granularity not in GRANULARITIES:
        raise _unknown("granularity", granularity, GRANULARITIES)
    metrics = _names(query, "metrics", METRICS) or METRICS
    dimensions = _names(query, "dimensions", DIMENSIONS)
    domains, emails, broadcasts = (_ids(query, name) for name in ("domain_id", "email_id", "broadcast_id"))
    _combinable(dimensions, emails, broadcasts)
    asked = _range(start, end, now, 0 if broadcasts else retention_days)
    return MetricsQuery(
        range=asked,
        timezone=timezone,
        granularity=granularity,
        metrics=metrics,
        dimensions=dimensions,
        domains=domains,
        emails=emails,
        broadcasts=broadcasts,
    )


def _edge(query: Query, name: str) -> RangeBound | None:
    text = query.text(name)
    if text is None:
        return None
    try:
        return RangeBound(parse_instant(text, date_only=True), len(text) == DATE)
    except ValueError as wrong:
        raise InvalidParameter(name, str(wrong)) from None


@cache
def _zones() -> dict[str, str]:
    return {name.lower(): name for name in available_timezones() - NO_ZONES}


def zone_name(name: str) -> str:
    """Return the IANA name as it is written there; raise 422 where there is none."""
    found = _zones().get(name.lower())
    if found is None:
        raise InvalidParameter("timezone", f"`{name[:SHOWN]}` is not an IANA time zone name.")
    return found


def _names(query: Query, parameter: str, known: tuple[str, ...]) -> tuple[str, ...]:
    found = tuple(query.items(parameter))
    for name in found:
        if name not in known:
            raise _unknown(parameter, name, known)
    return found


def _unknown(parameter: str, value: str, known: tuple[str, ...]) -> InvalidParameter:
    names = ", ".join(f"`{name}`" for name in known)
    return InvalidParameter(parameter, f"`{value[:SHOWN]}` is none of {names}.")


def _ids(query: Query, name: str) -> tuple[UUID, ...]:
    found = {text.lower(): None for text in query.items(name)}
    if len(found) > MOST_IDS:
        raise InvalidParameter(name, f"`{name}` accepts at most {MOST_IDS} values.")
    for text in found:
        if not well_formed(text):
            raise InvalidParameter(name, f"`{text[:SHOWN]}` is not a valid UUID.")
    return tuple(UUID(text) for text in found)


def _combinable(dimensions: tuple[str, ...], emails: tuple[UUID, ...], broadcasts: tuple[UUID, ...]) -> None:
    if "email" in dimensions and "broadcast" in dimensions:
        raise Invalid("The `email` and `broadcast` dimensions cannot be combined.")
    if emails and "broadcast" in dimensions:
        raise Invalid("The `email_id` filter and the `broadcast` dimension cannot be combined.")
    if broadcasts and "email" in dimensions:
        raise Invalid("The `broadcast_id` filter and the `email` dimension cannot be combined.")
    if emails and broadcasts:
        raise Invalid("The `email_id` and `broadcast_id` filters cannot be combined.")


def _range(start: RangeBound | None, end: RangeBound | None, now: datetime, retention_days: int) -> Range:
    """Return the range clamped to the present and to what is kept; the usual range is seven days."""
    last = end if end is not None and end.at <= now else RangeBound(now, day_only=False)
    closes = last.at + DAY if last.day_only else last.at
    first = start.at if start is not None else _usual_start(last.at)
    if first > now or (first >= closes if last.day_only else first > closes):
        raise Invalid("`start_date` must be on or before `end_date`.")
    oldest = oldest_day(now.astimezone(UTC), retention_days) if retention_days else first
    if closes <= oldest and oldest > first:
        return Range(oldest, oldest, oldest, oldest, empty=True)
    first = max(first, oldest)
    reach = min(closes, now)
    return Range(first, last.at, reach, None if closes >= now else closes, empty=first >= reach)


def _usual_start(end: datetime) -> datetime:
    earliest = datetime(1970, 1, 1, tzinfo=UTC)
    return max(end - USUAL, earliest)
