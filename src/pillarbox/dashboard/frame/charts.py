"""Charts as SVG, made on the server: lines, bars, a funnel, a sparkline, each with the table behind it.

Colours come from classes of the style sheet, so charts follow light, dark and forced colours. Each point has
a `<title>`, which browsers show on hover.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import Final, NamedTuple

from markupsafe import Markup, escape

from pillarbox.dashboard.texts.number_format import current, number

WIDTH: Final = 720
HEIGHT: Final = 200
LEFT: Final = 48
BOTTOM: Final = 24
TOP: Final = 10
GRID_LINES: Final = 4
AXIS_LABELS: Final = 6
LABEL_CHARACTER: Final = 6.2
"""Room that a character of a label needs."""

LABEL_HALF: Final = 36
"""Room that half of a label needs, so that the last one is not cut off."""


class Series(NamedTuple):
    """One line of a chart, with a value for each label. `tone` is a class of the style sheet."""

    name: str
    values: Sequence[float]
    tone: str


class ChartRow(NamedTuple):
    """One row of a chart's table."""

    label: str
    values: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A picture with the table that says the same."""

    title: str
    svg: Markup
    head: str
    names: list[str]
    rows: list[ChartRow] = field(default_factory=list)


def lines(title: str, head: str, labels: Sequence[str], series: Sequence[Series], unit: str = "") -> Chart:
    """Return a line chart; every series has one value per label."""
    top = _round_up(max((value for entry in series for value in entry.values), default=0))
    pieces = [_grid(top, unit), _labels(labels)]
    for entry in series:
        points = [(_x(index, len(labels)), _y(value, top)) for index, value in enumerate(entry.values)]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        pieces.append(f'<polyline class="line {escape(entry.tone)}" points="{path}"/>')
        pieces += [
            f'<circle class="dot {escape(entry.tone)}" cx="{x:.1f}" cy="{y:.1f}" r="3">'
            f"<title>{escape(labels[index])}: {escape(entry.name)} "
            f"{_amount(entry.values[index], unit)}</title></circle>"
            for index, (x, y) in enumerate(points)
        ]
    return _chart(title, head, labels, series, unit, "".join(pieces))


def bars(title: str, head: str, labels: Sequence[str], series: Sequence[Series], unit: str = "") -> Chart:
    """Return a chart of bars that stand on each other, one bar per label."""
    sums = [sum(entry.values[index] for entry in series) for index in range(len(labels))]
    top = _round_up(max(sums, default=0))
    room = (WIDTH - LEFT) / max(1, len(labels))
    width = max(1.0, min(28.0, room * 0.7))
    pieces = [_grid(top, unit), _labels(labels, is_centered=True)]
    for index, label in enumerate(labels):
        reached = 0.0
        for entry in series:
            value = entry.values[index]
            y_top, y_bottom = _y(reached + value, top), _y(reached, top)
            reached += value
            if value:
                x = LEFT + room * (index + 0.5) - width / 2
                pieces.append(
                    f'<rect class="bar {escape(entry.tone)}" x="{x:.1f}" y="{y_top:.1f}" width="{width:.1f}" '
                    f'height="{max(1.0, y_bottom - y_top):.1f}"><title>{escape(label)}: {escape(entry.name)} '
                    f"{_amount(value, unit)}</title></rect>"
                )
    return _chart(title, head, labels, series, unit, "".join(pieces))


def funnel(title: str, head: str, steps: Sequence[tuple[str, float]]) -> Chart:
    """Return horizontal bars of steps that follow each other, each beside the first one's size."""
    first = steps[0][1] if steps and steps[0][1] else 1.0
    pieces = []
    for index, (name, value) in enumerate(steps):
        y, width = 8 + index * 36, max(2.0, (WIDTH - 260) * min(1.0, value / first))
        pieces.append(
            f'<text class="label" x="0" y="{y + 18}">{escape(name)}</text>'
            f'<rect class="bar tone-{index % 4}" x="140" y="{y}" width="{width:.1f}" height="26" rx="3"/>'
            f'<text class="label" x="{150 + width:.1f}" y="{y + 18}">'
            f"{_amount(value)} · {number(100 * value / first, 1)}%</text>"
        )
    series = [Series(head, [value for _, value in steps], "tone-0")]
    height = 16 + 36 * len(steps)
    return _chart(title, head, [name for name, _ in steps], series, "", "".join(pieces), height)


def sparkline(title: str, values: Sequence[float]) -> Markup:
    """Return a small line without axes."""
    top = max(values, default=0) or 1
    points = " ".join(
        f"{2 + index * 96 / max(1, len(values) - 1):.1f},{22 - 20 * value / top:.1f}"
        for index, value in enumerate(values)
    )
    return Markup(  # noqa: S704 (numbers, and a title that is escaped)
        f'<svg class="sparkline" viewBox="0 0 100 24" role="img" aria-label="{escape(title)}">'
        f'<polyline class="line tone-0" points="{points}"/></svg>'
    )


def _chart(
    title: str,
    head: str,
    labels: Sequence[str],
    series: Sequence[Series],
    unit: str,
    drawing: str,
    height: int = HEIGHT + BOTTOM + TOP,
) -> Chart:
    legend = "".join(
        f'<span class="legend {escape(entry.tone)}"><i></i>{escape(entry.name)}</span>' for entry in series
    )
    svg = (
        f'<figcaption>{escape(title)} <span class="legends">{legend if len(series) > 1 else ""}</span>'
        "</figcaption>"
        f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(title)}">{drawing}</svg>'
    )
    rows = [
        ChartRow(label, [_amount(entry.values[index], unit) for entry in series])
        for index, label in enumerate(labels)
    ]
    return Chart(
        title=title,
        svg=Markup(svg),  # noqa: S704 (every text in it is escaped)
        head=head,
        names=[entry.name for entry in series],
        rows=rows,
    )


def _x(index: int, count: int) -> float:
    return LEFT + (WIDTH - LEFT - 8) * (index / max(1, count - 1))


def _y(value: float, top: float) -> float:
    return TOP + HEIGHT * (1 - value / top)


def _round_up(value: float) -> float:
    """Return the least round number that is not below the value and can be cut into quarters; at least 4."""
    if value <= 4:
        return value if 0 < value < 1 else 4.0
    power = 1.0
    while power * 10 < value:
        power *= 10
    return next(step * power for step in (1, 1.2, 1.6, 2, 2.4, 3, 4, 5, 6, 8, 10) if step * power >= value)


def _grid(top: float, unit: str) -> str:
    pieces = []
    for step in range(GRID_LINES + 1):
        value = top * step / GRID_LINES
        y = _y(value, top)
        pieces.append(
            f'<line class="grid" x1="{LEFT}" x2="{WIDTH}" y1="{y:.1f}" y2="{y:.1f}"/>'
            f'<text class="axis" x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">'
            f"{_amount(value, unit)}</text>"
        )
    return "".join(pieces)


def _labels(labels: Sequence[str], *, is_centered: bool = False) -> str:
    count = len(labels)
    room = (WIDTH - LEFT) / max(1, count)
    widest = max((len(label) for label in labels), default=0) * LABEL_CHARACTER
    # The first label begins at its point and the second is around its own, so that they are nearest.
    every = max(1, -(-count // AXIS_LABELS), ceil(1.5 * widest / room))
    pieces = []
    for index in range(0, count, every):
        x = LEFT + room * (index + 0.5) if is_centered else _x(index, count)
        anchor = "middle" if is_centered or 0 < index < count - 1 else "start" if index == 0 else "end"
        if is_centered and x > WIDTH - LABEL_HALF:
            x, anchor = WIDTH, "end"
        pieces.append(
            f'<text class="axis" x="{x:.1f}" y="{TOP + HEIGHT + 18}" text-anchor="{anchor}">'
            f"{escape(labels[index])}</text>"
        )
    return "".join(pieces)


def _amount(value: float, unit: str = "") -> str:
    if unit == "%":
        return f"{number(value, 2 if value < 1 else 1)} %"
    if value >= 1_000_000:
        return f"{number(value / 1_000_000, 1)} {current().million}"
    if value >= 10_000:
        return f"{number(value / 1000, 0)} {current().thousand}"
    if value < 1:
        return f"{value:g}".replace(".", current().decimal)
    return number(value, 0 if value == int(value) else 1)
