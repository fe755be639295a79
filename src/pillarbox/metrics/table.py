"""Counts as columns: so thousands of rows are added up, rated and written without a step for each value."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from operator import add, itemgetter
from typing import Any, NamedTuple

import msgspec

from pillarbox.metrics.definitions import COLUMNS

Counts = tuple[int, ...]
"""One row's counts, in the order of `definitions.COLUMNS`."""

NOTHING: Counts = (0,) * len(COLUMNS)

ID_OCTETS = 16

_GROUPS = ((0, 8), (8, 12), (12, 16), (16, 20), (20, 32))
"""Of the digits of an id as text."""

_numbers = msgspec.json.Decoder(list[int]).decode


class MetricKey(NamedTuple):
    """The dimensions of a row beside its period, in the order of rows; None where one was not asked for. Ids
    are text, which has the order of the ids."""

    domain_name: str | None
    domain_id: str | None
    broadcast_id: str | None
    email_id: str | None = None


@dataclass(slots=True)
class MetricTable:
    """Row by row a period's number, a key and counts (a column for each of `definitions.COLUMNS`). Periods
    ascend; `order` are the indexes of the rows in the order of the answer."""

    periods: list[int] = field(default_factory=list)
    keys: list[MetricKey] = field(default_factory=list)
    counts: list[Sequence[int]] = field(default_factory=lambda: list[Sequence[int]]([()] * len(COLUMNS)))
    order: list[int] = field(default_factory=list)

    def rows(self) -> Iterator[tuple[int, MetricKey, Counts]]:
        """Return the rows, in any order."""
        return zip(self.periods, self.keys, zip(*self.counts, strict=True), strict=True)


class _Keys(NamedTuple):
    """The keys of one period's rows, their indexes in order, and whether one of them is there twice."""

    keys: list[MetricKey]
    order: list[int]
    repeated: bool


def of_texts(records: Iterable[Any]) -> MetricTable:
    """Return the table that rows of keys and texts of numbers make. Days have the same domains, as a rule, so
    their keys are compared once."""
    table = MetricTable()
    known: dict[Any, _Keys] = {}
    texts = []
    repeated = False
    last = -1
    for period, *keys, text in sorted(records, key=itemgetter(0)):
        found = known.get(tuple(keys))
        if found is None:
            found = known[tuple(keys)] = _keys(*keys)
        base = len(table.keys)
        table.order += [base + place for place in found.order]
        table.keys += found.keys
        table.periods += [period] * len(found.keys)
        texts.append(text)
        repeated = repeated or found.repeated or period == last
        last = period
    flat = _numbers("[" + ",".join(texts) + "]")
    table.counts = [flat[place :: len(COLUMNS)] for place in range(len(COLUMNS))]
    return of_rows(table.rows()) if repeated else table


def of_rows(rows: Iterable[tuple[int, MetricKey, Counts]]) -> MetricTable:
    """Return the table of these rows; what several of them say of one combination is added up."""
    sums: dict[tuple[int, MetricKey], Counts] = {}
    for period, key, counts in rows:
        known = sums.get((period, key))
        sums[period, key] = counts if known is None else tuple(map(add, known, counts))
    if not sums:
        return MetricTable()
    places = sorted(sums, key=lambda at: at[1].email_id or "", reverse=True)
    places.sort(key=lambda at: (at[0], at[1][:3]))
    periods, keys = map(list, zip(*places, strict=True))
    return MetricTable(periods, keys, _columns(map(sums.__getitem__, places)), list(range(len(places))))


def _keys(domain_ids: bytes | None, names: str | None, broadcast_ids: bytes | None) -> _Keys:
    """Return the keys of which a period's row tells; one where nothing is distinguished."""
    size = max(len(domain_ids or b""), len(broadcast_ids or b""), ID_OCTETS) // ID_OCTETS
    named = [None] * size if names is None else names.split("\n")
    keys = list(map(MetricKey, named, _ids(domain_ids, size), _ids(broadcast_ids, size)))
    return _Keys(keys, sorted(range(size), key=keys.__getitem__), len(set(keys)) < size)


def _ids(octets: bytes | None, size: int) -> Sequence[str | None]:
    """Return `size` ids as text."""
    if octets is None:
        return [None] * size
    digits = octets.hex()
    starts = range(0, len(digits), 2 * ID_OCTETS)
    return ["-".join([digits[at + low : at + high] for low, high in _GROUPS]) for at in starts]


def _columns(rows: Iterable[Counts]) -> list[Sequence[int]]:
    return list(zip(*rows, strict=True)) or [()] * len(COLUMNS)


def filled(table: MetricTable, periods: Sequence[int]) -> MetricTable:
    """Return a table of one key, with a row for each of these periods."""
    known = dict(zip(table.periods, zip(*table.counts, strict=True), strict=True))
    rows = [known.get(period, NOTHING) for period in periods]
    return MetricTable(
        list(periods), [MetricKey(None, None, None)] * len(periods), _columns(rows), list(range(len(rows)))
    )
