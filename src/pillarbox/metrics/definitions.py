"""The metrics, by name: what they count and which rates are made of them (metrics.md section 4).

A count is a column of the rollups or a sum of columns. A rate is made from the counts of its own row and
never from other rates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

COLUMNS = (
    "received",
    "sent",
    "delivered",
    "delivery_delayed",
    "failed",
    "suppressed",
    "bounced_transient",
    "bounced_permanent",
    "bounced_undetermined",
    "opened",
    "clicked",
    "unique_opened",
    "unique_clicked",
    "complained",
    "unsubscribed",
)
"""The columns of a rollup, in the order in which a statement returns them."""

SUMS: dict[str, tuple[str, ...]] = {
    "bounced": ("bounced_transient", "bounced_permanent", "bounced_undetermined"),
}

RATES: dict[str, tuple[str, str]] = {
    "delivery_rate": ("delivered", "sent"),
    "open_rate": ("unique_opened", "delivered"),
    "click_rate": ("unique_clicked", "delivered"),
    "bounce_rate": ("bounced", "sent"),
    "complaint_rate": ("complained", "delivered"),
    "unsubscribe_rate": ("unsubscribed", "delivered"),
}
"""Numerator and denominator, in percent."""

METRICS = (
    "received",
    "delivered",
    "complained",
    "suppressed",
    "bounced",
    "bounced_transient",
    "bounced_permanent",
    "bounced_undetermined",
    "opened",
    "clicked",
    "unsubscribed",
    "delivery_delayed",
    "failed",
    "sent",
    "unique_opened",
    "unique_clicked",
    *RATES,
)
"""All names, in the order in which an answer without `metrics` shows them."""

_PLACES = {name: (COLUMNS.index(name),) for name in COLUMNS} | {
    name: tuple(COLUMNS.index(part) for part in parts) for name, parts in SUMS.items()
}


def values(counts: Sequence[int], wanted: Sequence[str]) -> dict[str, int | float]:
    """What one row shows: `counts` are its columns, `wanted` the names in their order."""
    return {name: _value(counts, name) for name in wanted}


def _value(counts: Sequence[int], name: str) -> int | float:
    if name in RATES:
        part, whole = RATES[name]
        return percent(_count(counts, part), _count(counts, whole))
    return _count(counts, name)


def _count(counts: Sequence[int], name: str) -> int:
    return sum(counts[place] for place in _PLACES[name])


def percent(part: int, whole: int) -> float:
    """`part` of `whole` times 100, rounded half up to two decimals; 0.0 of nothing."""
    if whole == 0:
        return 0.0
    return (part * 20000 + whole) // (whole * 2) / 100


def columns_of(counts: Mapping[str, int]) -> tuple[int, ...]:
    """Counts by name as the columns of a rollup."""
    return tuple(counts.get(name, 0) for name in COLUMNS)
