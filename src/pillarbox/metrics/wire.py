"""The answer of `GET /emails/metrics` (metrics.md section 6)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import msgspec

from pillarbox.kernel.http import encode
from pillarbox.kernel.instants import iso_style
from pillarbox.metrics.definitions import COLUMNS, Shape
from pillarbox.metrics.periods import Period
from pillarbox.metrics.question import DIMENSIONS, Question
from pillarbox.metrics.read import MOST_ROWS, Row, TooManyRows
from pillarbox.timeline.rollups import NOBODY

NOTHING = (0,) * len(COLUMNS)


class Metrics(msgspec.Struct):
    """Totals over the range, and rows for each combination of the dimensions."""

    object: str
    start_date: str
    end_date: str
    metrics: list[str]
    dimensions: list[str]
    granularity: str
    totals: dict[str, int | float]
    data: list[dict[str, Any]]


def answer(question: Question, found: Sequence[Period], rows: Sequence[Row]) -> bytes:
    """The whole answer; TooManyRows when it has more rows than an answer may have."""
    shape = Shape(question.metrics)
    total = tuple(map(sum, zip(*[row.counts for row in rows], strict=True))) or NOTHING
    return b'{"object":"metrics",%b,"totals":{%b},"data":[%b]}' % (
        _echo(question),
        shape.fields % shape.of(total),
        b",".join(_data(question, found, rows, shape)),
    )


def _echo(question: Question) -> bytes:
    """The question as it was understood, as members of the answer."""
    return encode(
        {
            "start_date": iso_style(question.range.start),
            "end_date": iso_style(question.range.end),
            "metrics": question.metrics,
            "dimensions": question.dimensions,
            "granularity": question.granularity,
        }
    )[1:-1]


def _data(question: Question, found: Sequence[Period], rows: Sequence[Row], shape: Shape) -> list[bytes]:
    if not question.dimensions:
        return []
    if question.dimensions == ("period",):
        known = {row.period: row.counts for row in rows}
        written = b'{"period":%b,' + shape.fields + b"}"
        return [
            written % (encode(period.label), *shape.of(known.get(index, NOTHING)))
            for index, period in enumerate(found)
        ]
    kept = [row for row in rows if any(row.counts) and row.broadcast_id != NOBODY]
    if len(kept) > MOST_ROWS:
        raise TooManyRows
    kept.sort(key=_order)
    keys = [_KEYS[name] for name in DIMENSIONS if question.by(name)]
    written = b"{" + b"".join(key.fields for key in keys) + shape.fields + b"}"
    columns = [column for key in keys for column in key.columns(found, kept)]
    of = shape.of
    return [
        written % (*own, *of(row.counts)) for row, own in zip(kept, zip(*columns, strict=True), strict=True)
    ]


def _order(row: Row) -> tuple[Any, ...]:
    email = row.email_id
    return row.period, row.domain_name, row.domain_id, row.broadcast_id, -email.int if email else 0


class _Key(NamedTuple):
    """What a dimension adds to each row: members, and a column of encoded values for each of them."""

    fields: bytes
    columns: Callable[[Sequence[Period], Sequence[Row]], list[list[bytes]]]


def _encoded(values: Iterable[Any]) -> list[bytes]:
    """Each value as JSON; the same value is encoded once."""
    known: dict[Any, bytes] = {NOBODY: b"null"}
    found = []
    for value in values:
        text = known.get(value)
        if text is None:
            text = known[value] = encode(value)
        found.append(text)
    return found


def _periods(found: Sequence[Period], rows: Sequence[Row]) -> list[list[bytes]]:
    return [_encoded(found[row.period].label for row in rows)]


def _domains(_: Sequence[Period], rows: Sequence[Row]) -> list[list[bytes]]:
    return [_encoded(row.domain_id for row in rows), _encoded(row.domain_name for row in rows)]


def _emails(_: Sequence[Period], rows: Sequence[Row]) -> list[list[bytes]]:
    return [_encoded(row.email_id for row in rows)]


def _broadcasts(_: Sequence[Period], rows: Sequence[Row]) -> list[list[bytes]]:
    return [_encoded(row.broadcast_id for row in rows)]


_KEYS = {
    "period": _Key(b'"period":%b,', _periods),
    "domain": _Key(b'"domain_id":%b,"domain_name":%b,', _domains),
    "email": _Key(b'"email_id":%b,', _emails),
    # Broadcasts have no names here before they exist.
    "broadcast": _Key(b'"broadcast_id":%b,"broadcast_name":"",', _broadcasts),
}
