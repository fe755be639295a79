"""The screen of metrics: one metric as a chart, all of them as figures, and the same as CSV."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any, Final, NamedTuple
from zoneinfo import ZoneInfo

from pillarbox.dashboard.frame import charts
from pillarbox.dashboard.frame.csv_file import MEDIA, lines
from pillarbox.dashboard.frame.screen_table import NavigationEntry, ScreenTable
from pillarbox.dashboard.frame.screens import download, screen
from pillarbox.dashboard.frame.times import period_text
from pillarbox.dashboard.frame.visit import Visit, with_query
from pillarbox.dashboard.metrics.choice import (
    FIELDS,
    SPANS,
    SPLITS,
    MetricChoice,
    choice_of,
    given_of,
)
from pillarbox.dashboard.texts import t
from pillarbox.dashboard.texts.number_format import number
from pillarbox.kernel.http.request import Html, Reply
from pillarbox.kernel.wire.problems import Problem
from pillarbox.metrics.definitions import METRICS, RATES
from pillarbox.metrics.periods import GRANULARITIES

HERE: Final = "/dashboard/metrics"
QUERY: Final = dict.fromkeys(FIELDS, str)
TONES: Final = ("tone-0", "tone-1", "tone-2", "tone-3")
LISTED: Final = 100
"""Domains or broadcasts in the table of a split."""


class MetricRow(NamedTuple):
    """A metric with its amount in the period and in the one before."""

    name: str
    text: str
    amount: str
    before: str
    change: str
    href: str


class SplitRow(NamedTuple):
    """A domain or a broadcast with its amount of the chosen metric."""

    name: str
    amount: str
    href: str | None


@screen(
    HERE,
    title="metrics.title",
    words="metrics.words",
    navigation=NavigationEntry(group="email", order=70, icon="chart", keys="m"),
    query=QUERY,
)
async def show(visit: Visit) -> Reply[Html]:
    """Show one metric over time, and all of them in sum."""
    given = given_of(visit)
    try:
        choice = choice_of(given, visit.request.at)
        drawn = await _values(visit, choice, given)
    except Problem as problem:
        status, said = problem.status, problem.message
        return await visit.draw(
            "metrics/metrics.html",
            status=status,
            problem=said,
            chart=None,
            drawn=None,
            **await _form(visit, given),
        )
    return await visit.draw("metrics/metrics.html", **drawn, **await _form(visit, given, choice))


@download(f"{HERE}/csv", title="metrics.csv", query=QUERY)
async def save_csv(visit: Visit) -> Reply[Html]:
    """Return what the screen shows as a file, with all metrics."""
    choice = choice_of(given_of(visit), visit.request.at)
    dimensions = ",".join(("period", *([choice.split] if choice.split else [])))
    answer = await visit.get("/emails/metrics", **choice.query(), dimensions=dimensions)
    names = ["period", *_names_of(choice.split), *METRICS]
    rows: Iterable[list[Any]] = [[row.get(name) for name in names] for row in answer["data"]]
    if choice.is_compared:
        before = await visit.get("/emails/metrics", **choice.query(before=True), dimensions=dimensions)
        pairs = zip_longest(await _periods(visit, choice), await _periods(visit, choice, before=True))
        rows = _compared(list(pairs), answer["data"], before["data"], choice.split)
        names += [f"{name}_before" for name in ("period", *METRICS)]
    days = "-".join(instant.astimezone(ZoneInfo(choice.zone)).date().isoformat() for instant in choice.bounds)
    return visit.save(f"metrics-{days}.csv", lines([names, *rows]), MEDIA)


async def _periods(visit: Visit, choice: MetricChoice, *, before: bool = False) -> list[str]:
    """Return the periods of the choice in their order, those without mail too."""
    query = {**choice.query(before=before), "metrics": choice.metric, "dimensions": "period"}
    return [row["period"] for row in (await visit.get("/emails/metrics", shown=False, **query))["data"]]


def _compared(
    pairs: Sequence[tuple[str | None, str | None]],
    rows: Sequence[Mapping[str, Any]],
    before: Sequence[Mapping[str, Any]],
    split: str | None,
) -> Iterator[list[Any]]:
    """Yield lines of both periods: each part of time beside the one at its place in the period before."""
    columns = _names_of(split)
    now_rows, old_rows = (
        {(row["period"], row.get(f"{split}_id")): row for row in each} for each in (rows, before)
    )
    parts = list(dict.fromkeys(row.get(f"{split}_id") for row in (*rows, *before)))
    for period, earlier in pairs:
        for part in parts:
            new, old = now_rows.get((period, part)), old_rows.get((earlier, part))
            if new is not None or old is not None:
                own = [(new or old or {}).get(name) for name in columns]
                counts = [(row or {}).get(name) for row in (new, old) for name in METRICS]
                yield [period, *own, *counts[: len(METRICS)], earlier, *counts[len(METRICS) :]]


def _names_of(split: str | None) -> list[str]:
    return [f"{split}_id", f"{split}_name"] if split else []


async def _values(visit: Visit, choice: MetricChoice, given: Mapping[str, str]) -> dict[str, Any]:
    """Return the values of the template for a choice."""
    totals = (await visit.get("/emails/metrics", shown=False, **choice.query()))["totals"]
    before = (await visit.get("/emails/metrics", shown=False, **choice.query(before=True)))["totals"]
    return {
        "chart": await _chart(visit, choice.drawn),
        "drawn": None if choice.drawn == choice else t(f"metrics.granularity.{choice.drawn.granularity}"),
        "rows": [_row(name, totals, before, given) for name in METRICS],
        "splits": await _splits(visit, choice),
        "total": _amount(choice.metric, totals[choice.metric]),
        "total_note": t(
            "metrics.against",
            before=_amount(choice.metric, before[choice.metric]),
            change=_change(choice.metric, totals[choice.metric], before[choice.metric]),
        ),
    }


async def _chart(visit: Visit, choice: MetricChoice) -> charts.Chart:
    rows = (await visit.get("/emails/metrics", **choice.query(), metrics=choice.metric, dimensions="period"))[
        "data"
    ]
    labels = [row["period"] for row in rows]
    name = t(f"metric.{choice.metric}")
    series = [charts.Series(name, [row[choice.metric] for row in rows], TONES[0])]
    if choice.split:
        series = await _split_series(visit, choice, labels) or series
    elif choice.is_compared:
        query = {**choice.query(before=True), "metrics": choice.metric, "dimensions": "period"}
        earlier = [
            row[choice.metric] for row in (await visit.get("/emails/metrics", shown=False, **query))["data"]
        ]
        padded = [*earlier, *[0] * len(labels)][: len(labels)]
        series.append(charts.Series(t("metrics.before"), padded, TONES[3]))
    shown = [period_text(label) for label in labels]
    return charts.lines(name, t("overview.period"), shown, series, choice.unit)


async def _split_series(visit: Visit, choice: MetricChoice, labels: Sequence[str]) -> list[charts.Series]:
    """Return a line for each of the largest parts."""
    names = [name for name, _, _ in list(await _ranked(visit, choice))[: len(TONES)]]
    query = {**choice.query(), "metrics": choice.metric, "dimensions": f"period,{choice.split}"}
    rows = (await visit.get("/emails/metrics", shown=False, **query))["data"]
    amounts = {(row["period"], _name(row, choice)): row[choice.metric] for row in rows}
    return [
        charts.Series(name, [amounts.get((label, name), 0) for label in labels], tone)
        for name, tone in zip(names, TONES, strict=False)
    ]


async def _splits(visit: Visit, choice: MetricChoice) -> list[SplitRow]:
    if choice.split is None:
        return []
    ranked = list(await _ranked(visit, choice))[:LISTED]
    leads_to = visit.request.use(ScreenTable).leads_to
    rows = [(name, amount, f"/dashboard/{choice.split}s/{part}") for name, amount, part in ranked]
    return [
        SplitRow(name, _amount(choice.metric, amount), path if leads_to(path) else None)
        for name, amount, path in rows
    ]


async def _ranked(visit: Visit, choice: MetricChoice) -> Iterator[tuple[str, float, str | None]]:
    """Return the parts with their amount, the largest first."""
    query = {**choice.query(), "metrics": choice.metric, "dimensions": choice.split}
    rows = (await visit.get("/emails/metrics", shown=False, **query))["data"]
    rows.sort(key=lambda row: -row[choice.metric])
    return ((_name(row, choice), row[choice.metric], row[f"{choice.split}_id"]) for row in rows)


def _name(row: Mapping[str, Any], choice: MetricChoice) -> str:
    return str(row[f"{choice.split}_name"] or row[f"{choice.split}_id"] or t("metrics.no_name"))


def _row(
    name: str, totals: Mapping[str, Any], before: Mapping[str, Any], given: Mapping[str, str]
) -> MetricRow:
    return MetricRow(
        name=name,
        text=t(f"metric.{name}"),
        amount=_amount(name, totals[name]),
        before=_amount(name, before[name]),
        change=_change(name, totals[name], before[name]),
        href=with_query(HERE, **{**given, "metric": name}),
    )


def _amount(name: str, value: float) -> str:
    return f"{number(value, 2)} %" if name in RATES else number(int(value))


def _change(name: str, now: float, before: float) -> str:
    """Return how the amount changed: in points for a rate, in percent for a count."""
    if now == before:
        return "–"
    if name in RATES:
        return t("metrics.points", points=number(now - before, 2, is_signed=True))
    if not before:
        return "–"
    return f"{number(100 * (now - before) / before, 0, is_signed=True)} %"


async def _form(visit: Visit, given: Mapping[str, str], choice: MetricChoice | None = None) -> dict[str, Any]:
    """Return the options of the form of filters, and the chosen ones."""
    domains = (await visit.get("/domains", shown=False, limit=100))["data"]
    return {
        "given": {
            **given,
            "metric": choice.metric if choice else given["metric"],
            "granularity": choice.granularity if choice else given["granularity"],
            "zone": choice.zone if choice else given["zone"],
            "span": given["span"] or "30d",
        },
        "metrics": {name: t(f"metric.{name}") for name in METRICS},
        "granularities": {name: t(f"metrics.granularity.{name}") for name in GRANULARITIES},
        "splits_by": {name: t(f"metrics.by.{name}") for name in SPLITS},
        "spans": {name: t(f"metrics.span.{name}") for name in SPANS},
        "domains": {domain["id"]: domain["name"] for domain in domains},
        "is_filtered": any(given.values()),
        "csv": with_query(f"{HERE}/csv", **given),
    }
