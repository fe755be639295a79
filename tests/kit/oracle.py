"""The numbers of metrics.md computed plainly: event by event, quarter hour by quarter hour. Slow, and without
one line of the product in it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from kit.histories import Event, History

COUNTS = (
    *("received", "delivered", "complained", "suppressed", "bounced", "bounced_transient"),
    *("bounced_permanent", "bounced_undetermined", "opened", "clicked", "unsubscribed", "delivery_delayed"),
    *("failed", "sent", "unique_opened", "unique_clicked"),
)
RATES = {
    "delivery_rate": ("delivered", "sent"),
    "open_rate": ("unique_opened", "delivered"),
    "click_rate": ("unique_clicked", "delivered"),
    "bounce_rate": ("bounced", "sent"),
    "complaint_rate": ("complained", "delivered"),
    "unsubscribe_rate": ("unsubscribed", "delivered"),
}
STEP = timedelta(minutes=15)


@dataclass(frozen=True)
class Asked:
    """A question in plain words."""

    start: datetime
    end: datetime
    zone: str = "UTC"
    granularity: str = "daily"
    dimensions: tuple[str, ...] = ()
    domains: tuple[UUID, ...] = ()
    emails: tuple[UUID, ...] = ()
    broadcasts: tuple[UUID, ...] = ()

    def params(self) -> dict[str, str]:
        """Return the question as the query of a request."""
        named = {
            "start_date": self.start.isoformat(),
            "end_date": self.end.isoformat(),
            "timezone": self.zone,
            "granularity": self.granularity,
            "dimensions": ",".join(self.dimensions),
            "domain_id": ",".join(map(str, self.domains)),
            "email_id": ",".join(map(str, self.emails)),
            "broadcast_id": ",".join(map(str, self.broadcasts)),
        }
        return {name: value for name, value in named.items() if value}


def totals(history: History, asked: Asked) -> dict[str, Any]:
    return _shown(_sum(_of(history, asked)))


def data(history: History, asked: Asked) -> list[dict[str, Any]]:
    """Return the rows of the answer, in its order."""
    if not asked.dimensions:
        return []
    found: defaultdict[tuple[Any, ...], list[Event]] = defaultdict(list)
    for event in _of(history, asked):
        key = _key(event, asked)
        if key is not None:
            found[key].append(event)
    if asked.dimensions == ("period",):
        labels = dict.fromkeys(_labels(asked))
        return [{"period": label, **_shown(_sum(found.get((label, "", "", "", 0), [])))} for label in labels]
    rows = []
    for key in sorted(found):
        counts = _sum(found[key])
        if any(counts.values()):
            rows.append({**_names(found[key][0], key, asked), **_shown(counts)})
    return rows


def _of(history: History, asked: Asked) -> Sequence[Event]:
    return [
        event
        for event in history.events
        if asked.start <= event.at < asked.end
        and (not asked.domains or event.sender.domain_id in asked.domains)
        and (not asked.emails or event.email_id in asked.emails)
        and (not asked.broadcasts or event.sender.broadcast_id in asked.broadcasts)
    ]


def _sum(events: Sequence[Event]) -> Counter[str]:
    return Counter(metric for event in events for metric in event.metrics)


def _shown(counts: Counter[str]) -> dict[str, Any]:
    shown: dict[str, Any] = {name: counts[name] for name in COUNTS}
    for name, (part, whole) in RATES.items():
        exact = Fraction(counts[part] * 100, counts[whole]) if counts[whole] else Fraction(0)
        decimal = Decimal(exact.numerator) / Decimal(exact.denominator)
        shown[name] = float(decimal.quantize(Decimal("0.01"), ROUND_HALF_UP))
    return shown


def _key(event: Event, asked: Asked) -> tuple[Any, ...] | None:
    by = asked.dimensions
    if "broadcast" in by and event.sender.broadcast_id is None:
        return None
    return (
        label(event.at, asked) if "period" in by else "",
        event.sender.domain_name if "domain" in by else "",
        str(event.sender.domain_id or "") if "domain" in by else "",
        str(event.sender.broadcast_id) if "broadcast" in by else "",
        -event.email_id.int if "email" in by else 0,
    )


def _names(event: Event, key: tuple[Any, ...], asked: Asked) -> dict[str, Any]:
    shown: dict[str, Any] = {}
    if "period" in asked.dimensions:
        shown["period"] = key[0]
    if "domain" in asked.dimensions:
        known = event.sender.domain_id
        shown |= {"domain_id": str(known) if known else None, "domain_name": event.sender.domain_name}
    if "email" in asked.dimensions:
        shown["email_id"] = str(event.email_id)
    if "broadcast" in asked.dimensions:
        shown |= {"broadcast_id": str(event.sender.broadcast_id), "broadcast_name": ""}
    return shown


def label(at: datetime, asked: Asked) -> str:
    """Return the name of the period that an instant lies in."""
    zone = ZoneInfo(asked.zone)
    if asked.granularity == "hourly":
        return _hour(at, zone)
    day = at.astimezone(zone).date()
    if asked.granularity == "weekly":
        day -= timedelta(days=day.weekday())
    if asked.granularity == "monthly":
        day = day.replace(day=1)
    return day.isoformat()


def _hour(at: datetime, zone: ZoneInfo) -> str:
    """Walk back while the local hour and the offset stay the same."""

    def clock(when: datetime) -> tuple[Any, ...]:
        local = when.astimezone(zone)
        return (local.date(), local.hour, local.utcoffset())

    start = at.astimezone(UTC).replace(minute=at.minute - at.minute % 15, second=0, microsecond=0)
    while clock(start - STEP) == clock(at):
        start -= STEP
    return start.strftime("%Y-%m-%dT%H:%M:%S.000Z")


def _labels(asked: Asked) -> list[str]:
    """Return the labels of every period that the range touches, in order."""
    found = []
    at = asked.start
    while at < asked.end:
        found.append(label(at, asked))
        at = at.replace(minute=at.minute - at.minute % 15, second=0, microsecond=0) + STEP
    return found
