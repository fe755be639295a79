"""The choice of the metrics screen, from its address: metric, period, granularity, split and zone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, tzinfo
from typing import Any, Final
from zoneinfo import ZoneInfo

from pillarbox.dashboard.frame.filter_fields import day_of
from pillarbox.dashboard.frame.metrics_periods import metric_range
from pillarbox.dashboard.frame.times import zone
from pillarbox.dashboard.frame.visit import Visit
from pillarbox.kernel.wire.problems import InvalidParameter
from pillarbox.metrics.definitions import METRICS, RATES
from pillarbox.metrics.periods import GRANULARITIES
from pillarbox.metrics.question import zone_name

FIELDS: Final = ("metric", "by", "granularity", "span", "since", "until", "zone", "domain", "compare")
SPLITS: Final = ("domain", "broadcast")

MOST_POINTS: Final = 750
"""Points of one line: one for each pixel of a wide chart."""

LENGTHS: Final[Mapping[str, timedelta]] = {
    "hourly": timedelta(hours=1),
    "daily": timedelta(days=1),
    "weekly": timedelta(days=7),
    "monthly": timedelta(days=30),
}

SPANS: Final[Mapping[str, timedelta]] = {
    "24h": timedelta(hours=24),
    "7d": timedelta(days=7),
    "30d": timedelta(days=30),
    "90d": timedelta(days=90),
    "365d": timedelta(days=365),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricChoice:
    """A valid choice. `start` and `end` bound the period; `split` is a dimension beside time, or None."""

    metric: str
    granularity: str
    start: datetime
    end: datetime
    now: datetime
    zone: str
    split: str | None
    domain_id: str | None
    is_compared: bool

    @property
    def bounds(self) -> tuple[datetime, datetime]:
        """The first instant of the period and its last one."""
        return self.start, self.end

    @property
    def drawn(self) -> MetricChoice:
        """The same choice in periods so long that a chart has no more than `MOST_POINTS` points."""
        length = self.end - self.start
        finer = GRANULARITIES[: GRANULARITIES.index(self.granularity)]
        longer = [name for name in GRANULARITIES if name not in finer]
        fitting = (name for name in longer if length / LENGTHS[name] <= MOST_POINTS)
        return replace(self, granularity=next(fitting, GRANULARITIES[-1]))

    @property
    def unit(self) -> str:
        """`%` where the metric is a rate."""
        return "%" if self.metric in RATES else ""

    def query(self, *, before: bool = False) -> dict[str, Any]:
        """Return the query of the API for this period, or for the one of the same length before it."""
        length = self.end - self.start
        start, end = (self.start - length, self.start) if before else (self.start, self.end)
        return {
            **metric_range(start, end, self.now),
            "timezone": self.zone,
            "granularity": self.granularity,
            "domain_id": self.domain_id,
        }


def given_of(visit: Visit) -> dict[str, str]:
    """Return the fields of the address as they were typed."""
    return {name: visit.request.query.text(name) or "" for name in FIELDS}


def choice_of(given: Mapping[str, str], now: datetime) -> MetricChoice:
    """Return what the address asks for, with usual values for what it leaves out; raise InvalidParameter."""
    name = zone_name(given["zone"] or getattr(zone(), "key", "UTC"))
    start, end = _period(given, now, ZoneInfo(name))
    return MetricChoice(
        metric=_known(given["metric"], METRICS) or "delivered",
        granularity=_known(given["granularity"], GRANULARITIES) or _usual_granularity(end - start),
        start=start,
        end=end,
        now=now,
        zone=name,
        split=_known(given["by"], SPLITS),
        domain_id=given["domain"] or None,
        is_compared=given["compare"] == "yes",
    )


def _known(text: str, names: tuple[str, ...]) -> str | None:
    return text if text in names else None


def _period(given: Mapping[str, str], now: datetime, reader_zone: tzinfo) -> tuple[datetime, datetime]:
    """Return the days that were typed, else the span up to now."""
    since, until = (day_of(given[name], reader_zone) for name in ("since", "until"))
    end = now if until is None else min(now, until + timedelta(days=1))
    start = end - SPANS.get(given["span"], SPANS["30d"]) if since is None else since
    if start >= end:
        raise InvalidParameter("since", "The first day must not be after the last one, or in the future.")
    return start, end


def _usual_granularity(length: timedelta) -> str:
    if length <= timedelta(days=2):
        return "hourly"
    return "daily" if length <= timedelta(days=92) else "weekly"
