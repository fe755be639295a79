"""The answer of `GET /emails/metrics` (metrics.md section 6)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import groupby
from typing import Annotated, Any, Literal, NamedTuple
from uuid import UUID

import msgspec
from msgspec import UNSET, Meta, UnsetType

from pillarbox.kernel.http.request import encode
from pillarbox.kernel.http.schemas import one_of, shown_as
from pillarbox.kernel.wire.instants import IsoTime, iso_style
from pillarbox.metrics.definitions import METRICS, RATES, shown
from pillarbox.metrics.periods import GRANULARITIES, Period
from pillarbox.metrics.question import DIMENSIONS, MOST_IDS, MetricsQuery
from pillarbox.metrics.read import MOST_ROWS, TooManyRows
from pillarbox.metrics.table import NOTHING, Counts, MetricTable, filled
from pillarbox.timeline.levels import NOBODY

Names = Mapping[str, str]
"""Of broadcasts that have one, by their ids as text."""

NO_NAMES: Names = {}
NO_ID = str(NOBODY)
SHAPES = 64


Granularity = Annotated[str, one_of(GRANULARITIES)]
Metric = Annotated[str, one_of(METRICS)]
Dimension = Annotated[str, one_of(DIMENSIONS)]
SomeIds = Annotated[list[UUID], Meta(description=f"At most {MOST_IDS} different ids.")]

COUNTS: list[tuple[str, Any, Any]] = [
    (name, (float if name in RATES else int) | UnsetType, UNSET) for name in METRICS
]
"""Each metric, where it was asked for."""

Totals = msgspec.defstruct("Totals", COUNTS, module=__name__)
MetricsRow = msgspec.defstruct(
    "MetricsRow",
    [
        ("period", str | UnsetType, UNSET),
        ("domain_id", UUID | UnsetType | None, UNSET),
        ("domain_name", str | UnsetType, UNSET),
        ("email_id", UUID | UnsetType, UNSET),
        ("broadcast_id", UUID | UnsetType, UNSET),
        ("broadcast_name", str | UnsetType, UNSET),
        *COUNTS,
    ],
    module=__name__,
)
"""All that a row may have; what it has, `_struct` makes of the question."""


class Metrics(msgspec.Struct, kw_only=True):
    """Totals over the range, and rows for each combination of the dimensions."""

    object: Literal["metrics"]
    start_date: IsoTime
    end_date: IsoTime
    metrics: list[Metric]
    dimensions: list[Dimension]
    granularity: Granularity
    totals: Annotated[dict[str, Any], shown_as(Totals)]
    data: Annotated[list[dict[str, Any]], shown_as(list[MetricsRow])]


END = b"]}"


class PeriodText(NamedTuple):
    """The rows of one period in an answer: their number, and their JSON with commas between."""

    rows: int
    text: bytes


class PeriodRows(NamedTuple):
    """The same with all counts, also those of rows that are not shown."""

    rows: int
    text: bytes
    counts: Counts


NO_ROWS = PeriodText(0, b"")


def answer(
    question: MetricsQuery, periods: Sequence[Period], table: MetricTable, names: Names = NO_NAMES
) -> bytes:
    """Return the whole answer; raise TooManyRows when it has more rows than an answer may have."""
    rows, order = _rows(question, periods, _with_zeros(question, table, range(len(periods))), names)
    if len(order) > MOST_ROWS:
        raise TooManyRows
    totals = [sum(column) for column in table.counts]
    return _joined(question, totals, [encode([rows[place] for place in order])[1:-1]])


def texts(
    question: MetricsQuery, periods: Sequence[Period], table: MetricTable, asked: Sequence[int], names: Names
) -> dict[int, PeriodText]:
    """Return the rows of each of the periods `asked` as JSON; the table has their counts."""
    made = dict.fromkeys(asked, NO_ROWS)
    table = _with_zeros(question, table, asked)
    rows, order = _rows(question, periods, table, names)
    ordered = [rows[place] for place in order]
    first = 0
    for period, places in groupby([table.periods[place] for place in order]):
        last = first + len(list(places))
        made[period] = PeriodText(last - first, encode(ordered[first:last])[1:-1])
        first = last
    return made


def counts(table: MetricTable, asked: Sequence[int]) -> dict[int, Counts]:
    """Return all counts of each of the periods `asked`, added up."""
    made = dict.fromkeys(asked, NOTHING)
    first = 0
    for period, places in groupby(table.periods):
        last = first + len(list(places))
        made[period] = tuple([sum(column[first:last]) for column in table.counts])
        first = last
    return made


def assembled(
    question: MetricsQuery,
    table: MetricTable,
    known: Sequence[PeriodRows],
    period_texts: Sequence[PeriodText | PeriodRows],
) -> bytes:
    """Return the whole answer: totals are those of the table and of what is known beside it, rows those of
    all periods. TooManyRows as above."""
    if sum(piece.rows for piece in period_texts) > MOST_ROWS:
        raise TooManyRows
    counted = [tuple(map(sum, table.counts)), *(piece.counts for piece in known)]
    totals = list(map(sum, zip(*counted, strict=True)))
    return _joined(question, totals, [piece.text for piece in period_texts if piece.rows])


def _joined(question: MetricsQuery, counts: Sequence[int], rows: list[bytes]) -> bytes:
    """Return the head of the answer with these totals, and the rows, which are copied once."""
    totals = shown(question.metrics, [(count,) for count in counts])
    head = Metrics(
        object="metrics",
        start_date=iso_style(question.range.start),
        end_date=iso_style(question.range.end),
        metrics=list(question.metrics),
        dimensions=list(question.dimensions),
        granularity=question.granularity,
        totals=dict(zip(question.metrics, (column[0] for column in totals), strict=True)),
        data=[],
    )
    parts = [encode(head).removesuffix(END)]
    for text in rows:
        parts += (text, b",")
    parts[len(parts) - 1 if rows else 1 :] = [END]
    return b"".join(parts)


def _with_zeros(question: MetricsQuery, table: MetricTable, asked: Sequence[int]) -> MetricTable:
    return filled(table, asked) if question.dimensions == ("period",) else table


def _rows(
    question: MetricsQuery, periods: Sequence[Period], table: MetricTable, broadcast_names: Names
) -> tuple[list[Any], list[int]]:
    """Return a row for each of the table's, and the indexes of those that are shown, in their order. Each is
    a struct whose fields are its members: made and written in C."""
    if not question.dimensions:
        return [], []
    order = table.order if question.dimensions == ("period",) else _shown(table)
    if question.by("broadcast"):
        order = _by_name(table, order, broadcast_names)
    names: list[str] = []
    columns: list[Sequence[Any]] = []
    for dimension in DIMENSIONS:
        if question.by(dimension):
            for name, column in _MEMBERS[dimension]:
                names.append(name)
                columns.append(column(periods, table, broadcast_names))
    row = _struct((*names, *question.metrics))
    return list(map(row, *columns, *shown(question.metrics, table.counts))), order


@lru_cache(SHAPES)
def _struct(names: tuple[str, ...]) -> type[msgspec.Struct]:
    return msgspec.defstruct("Row", [(name, Any) for name in names], gc=False)


def _shown(table: MetricTable) -> list[int]:
    """Return the indexes of the rows that an answer has: something was counted, and not for mail of
    no broadcast."""
    order = table.order
    if not any(map(all, table.counts)):
        counted = list(map(any, zip(*table.counts, strict=True)))
        order = [place for place in order if counted[place]]
    if not table.keys or table.keys[0].broadcast_id is None:
        return order
    return [place for place in order if table.keys[place].broadcast_id != NO_ID]


def _by_name(table: MetricTable, order: Sequence[int], names: Names) -> list[int]:
    """Return the indexes with broadcasts in the order of their names."""

    def place(index: int) -> tuple[Any, ...]:
        key = table.keys[index]
        named = names.get(key.broadcast_id or "", "")
        return table.periods[index], key.domain_name, key.domain_id, named, key.broadcast_id

    return sorted(order, key=place)


def _periods(periods: Sequence[Period], table: MetricTable, _names: Names) -> list[str]:
    labels = [period.label for period in periods]
    return list(map(labels.__getitem__, table.periods))


def _domain_ids(_: Sequence[Period], table: MetricTable, _names: Names) -> list[str | None]:
    ids = [key.domain_id for key in table.keys]
    return [None if one == NO_ID else one for one in ids] if NO_ID in ids else ids


def _domain_names(_: Sequence[Period], table: MetricTable, _names: Names) -> list[str | None]:
    return [key.domain_name for key in table.keys]


def _emails(_: Sequence[Period], table: MetricTable, _names: Names) -> list[str | None]:
    return [key.email_id for key in table.keys]


def _broadcasts(_: Sequence[Period], table: MetricTable, _names: Names) -> list[str | None]:
    return [key.broadcast_id for key in table.keys]


def _broadcast_names(_: Sequence[Period], table: MetricTable, names: Names) -> list[str]:
    return [names.get(key.broadcast_id or "", "") for key in table.keys]


_MEMBERS: dict[
    str, tuple[tuple[str, Callable[[Sequence[Period], MetricTable, Names], Sequence[Any]]], ...]
] = {
    "period": (("period", _periods),),
    "domain": (("domain_id", _domain_ids), ("domain_name", _domain_names)),
    "email": (("email_id", _emails),),
    "broadcast": (("broadcast_id", _broadcasts), ("broadcast_name", _broadcast_names)),
}
"""The fields that a dimension adds to each row."""
