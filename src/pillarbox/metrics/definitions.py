"""The metrics, by name: what they count and which rates are made of them (metrics.md section 4).

A count is a column of the rollups or a sum of columns. A rate is made from the counts of its own row and
never from other rates.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from operator import add

from msgspec import Raw

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


def shown(names: Sequence[str], counts: Sequence[Sequence[int]]) -> list[Sequence[int | Raw]]:
    """Return a column of values for each of these metrics, from a column of counts for each of `COLUMNS`."""
    known = dict(zip(COLUMNS, counts, strict=True))

    def count(name: str) -> Sequence[int]:
        if name not in known:
            total, *more = (known[part] for part in SUMS[name])
            for part in more:
                total = list(map(add, total, part))
            known[name] = total
        return known[name]

    return [
        _percents(count(RATES[name][0]), count(RATES[name][1])) if name in RATES else count(name)
        for name in names
    ]


def _percents(parts: Sequence[int], wholes: Sequence[int]) -> list[Raw]:
    """Return each part of its whole times 100, rounded half up to two decimals from the exact fraction; 0.0
    of nothing."""
    texts = _texts()
    if not any(parts):
        return [texts[0]] * len(parts)
    try:
        return [
            texts[(part * 20000 + whole) // (whole + whole)] if whole else texts[0]
            for part, whole in zip(parts, wholes, strict=True)
        ]
    except IndexError:
        return [
            _text((part * 20000 + whole) // (whole + whole)) if whole else texts[0]
            for part, whole in zip(parts, wholes, strict=True)
        ]


@cache
def _texts() -> list[Raw]:
    """Return the rates up to a hundred percent as they are written, by their hundredths. An answer may have
    ten thousand of them, and most of what a rate cost was to find the shortest text for a fraction."""
    return [_text(hundredths) for hundredths in range(100 * 100 + 1)]


def _text(hundredths: int) -> Raw:
    return Raw(repr(hundredths / 100).encode())
