"""The answer of `GET /emails/metrics` (metrics.md section 6)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import msgspec

from pillarbox.kernel.instants import iso_style
from pillarbox.metrics.definitions import COLUMNS, values
from pillarbox.metrics.periods import Period
from pillarbox.metrics.question import Question
from pillarbox.metrics.read import MOST_ROWS, Row, TooManyRows
from pillarbox.timeline.rollups import NOBODY

NOTHING = (0,) * len(COLUMNS)
FIRST = UUID(int=0)


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


def answer(question: Question, found: Sequence[Period], rows: Sequence[Row]) -> Metrics:
    """The whole answer; TooManyRows when it has more rows than an answer may have."""
    total = NOTHING
    for row in rows:
        total = tuple(a + b for a, b in zip(total, row.counts, strict=True))
    return Metrics(
        object="metrics",
        start_date=iso_style(question.range.start),
        end_date=iso_style(question.range.end),
        metrics=list(question.metrics),
        dimensions=list(question.dimensions),
        granularity=question.granularity,
        totals=values(total, question.metrics),
        data=_data(question, found, rows),
    )


def _data(question: Question, found: Sequence[Period], rows: Sequence[Row]) -> list[dict[str, Any]]:
    if not question.dimensions:
        return []
    if question.dimensions == ("period",):
        known = {row.period: row.counts for row in rows}
        return [
            {"period": period.label, **values(known.get(index, NOTHING), question.metrics)}
            for index, period in enumerate(found)
        ]
    kept = [row for row in rows if any(row.counts) and (row.broadcast_id != NOBODY)]
    if len(kept) > MOST_ROWS:
        raise TooManyRows
    kept.sort(key=_order)
    return [_row(question, found, row) for row in kept]


def _order(row: Row) -> tuple[Any, ...]:
    return (
        row.period,
        row.domain_name or "",
        row.domain_id or FIRST,
        row.broadcast_id or FIRST,
        -(row.email_id or FIRST).int,
    )


def _row(question: Question, found: Sequence[Period], row: Row) -> dict[str, Any]:
    shown: dict[str, Any] = {}
    if question.by("period"):
        shown["period"] = found[row.period].label
    if question.by("domain"):
        shown["domain_id"] = None if row.domain_id == NOBODY else row.domain_id
        shown["domain_name"] = row.domain_name
    if question.by("email"):
        shown["email_id"] = row.email_id
    if question.by("broadcast"):
        shown["broadcast_id"] = row.broadcast_id
        # Broadcasts have no names here before they exist.
        shown["broadcast_name"] = ""
    return {**shown, **values(row.counts, question.metrics)}
