"""The metrics, by name: what they count and which rates are made of them (metrics.md section 4).

A count is a column of the rollups or a sum of columns. A rate is made from the counts of its own row and
never from other rates.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter

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

_PLACES = {name: place for place, name in enumerate(COLUMNS)}
_BOUNCED = tuple(_PLACES[name] for name in SUMS["bounced"])


class Shape:
    """How the counts of a row are written: `wanted` are the names in their order. Made once for an answer,
    because an answer may have ten thousand rows: a row costs one bytes formatting and no object."""

    __slots__ = ("_pick", "_rates", "fields")

    _pick: Callable[[tuple[int | float, ...]], tuple[int | float, ...]]

    def __init__(self, wanted: Sequence[str]) -> None:
        places = dict(_PLACES, bounced=len(COLUMNS))
        rates = [name for name in wanted if name in RATES]
        for name in rates:
            places[name] = len(places)
        self._rates = [(places[part], places[whole]) for part, whole in (RATES[name] for name in rates)]
        chosen = [places[name] for name in wanted]
        # With a single name, itemgetter would not give a tuple.
        self._pick = itemgetter(*chosen) if len(chosen) > 1 else lambda row: (row[chosen[0]],)
        self.fields = b",".join(
            b'"%b":%b' % (name.encode(), b"%a" if name in RATES else b"%d") for name in wanted
        )
        """The members of a JSON object, for the values of `of`."""

    def of(self, counts: tuple[int, ...]) -> tuple[int | float, ...]:
        """What one row shows; `counts` are its columns."""
        first, second, third = _BOUNCED
        row = (*counts, counts[first] + counts[second] + counts[third])
        if not self._rates:
            return self._pick(row)
        return self._pick((*row, *[percent(row[part], row[whole]) for part, whole in self._rates]))


def percent(part: int, whole: int) -> float:
    """`part` of `whole` times 100, rounded half up to two decimals; 0.0 of nothing."""
    return (part * 20000 + whole) // (whole * 2) / 100 if whole else 0.0
