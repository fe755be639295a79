"""A graph as SVG, made on the server: boxes of steps that are links, and lines between them.

Colours come from classes of the style sheet, and every state is said in words. The page has a table that says
the same. Lines are joined to few paths, so the largest graph stays small.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from markupsafe import Markup, escape

from pillarbox.dashboard.automations.graph_layout import GAP_Y, MARGIN, WIDTH, placed
from pillarbox.dashboard.texts import t

HEIGHT: Final = 62
WITH_FIGURES: Final = 82
"""Heights of a box without and with a line of figures."""

KEY_CHARACTERS: Final = 21
DETAIL_CHARACTERS: Final = 26
FIGURES_CHARACTERS: Final = 30
OUTCOMES: Final = ("condition_met", "condition_not_met", "event_received", "timeout")
"""Outcomes whose lines have a word."""


class DrawnStep(NamedTuple):
    """A box: what kind of step, its key, what it does, figures or state below, and a class for its colour."""

    kind: str
    key: str
    detail: str
    figures: str
    tone: str
    href: str
    title: str


class DrawnLine(NamedTuple):
    """A line between two boxes. `is_taken` where the shown run went there."""

    source: int
    target: int
    outcome: str
    is_taken: bool = False


def drawn(label: str, steps: Sequence[DrawnStep], lines: Sequence[DrawnLine]) -> Markup:
    """Return the picture; `label` is its name for those who do not see it."""
    height = WITH_FIGURES if any(step.figures for step in steps) else HEIGHT
    layout = placed(len(steps), [(line.source, line.target) for line in lines], height)
    pieces = [
        f'<svg class="graph" viewBox="0 0 {layout.width:.0f} {layout.height:.0f}" '
        f'width="{layout.width:.0f}" height="{layout.height:.0f}" role="group" aria-label="{escape(label)}">'
    ]
    pieces += _paths(lines, layout.ways)
    pieces += [_words(line, way) for line, way in zip(lines, layout.ways, strict=True)]
    pieces += [_box(step, x, y, height) for step, (x, y) in zip(steps, layout.steps, strict=True)]
    return Markup("".join([*pieces, "</svg>"]))  # noqa: S704 (every text in it is escaped)


def _paths(lines: Sequence[DrawnLine], ways: Sequence[Sequence[tuple[float, float]]]) -> list[str]:
    """Return one path for the lines that a run took, and one for all others."""
    drawings: dict[bool, list[str]] = {False: [], True: []}
    for line, way in zip(lines, ways, strict=True):
        drawings[line.is_taken].append(_curve(way))
    classes: Mapping[bool, str] = {False: "way", True: "way taken"}
    return [f'<path class="{classes[taken]}" d="{"".join(one)}"/>' for taken, one in drawings.items() if one]


def _curve(way: Sequence[tuple[float, float]]) -> str:
    (x, y), *rest = way
    pieces = [f"M{x:.0f} {y:.0f}"]
    for to_x, to_y in rest:
        if to_x == x:
            pieces.append(f"V{to_y:.0f}")
        else:
            middle = (y + to_y) / 2
            pieces.append(f"C{x:.0f} {middle:.0f} {to_x:.0f} {middle:.0f} {to_x:.0f} {to_y:.0f}")
        x, y = to_x, to_y
    pieces.append("m-4-6 4 6 4-6")
    return "".join(pieces)


def _words(line: DrawnLine, way: Sequence[tuple[float, float]]) -> str:
    """Return the word beside the beginning of a line."""
    if line.outcome not in OUTCOMES:
        return ""
    (x, y), (to_x, _) = way[0], way[1]
    place = x + (to_x - x) * 0.5
    anchor = "start" if to_x >= x else "end"
    shift = 5 if to_x >= x else -5
    return (
        f'<text class="word" x="{place + shift:.0f}" y="{y + GAP_Y * 0.44:.0f}" text-anchor="{anchor}">'
        f"{escape(t('automation.outcome.' + line.outcome))}</text>"
    )


def _box(step: DrawnStep, middle: float, top: float, tall: int) -> str:
    x = middle - WIDTH / 2
    inside = f"{x + 12:.0f}"
    kind = escape(t("automation.type." + step.kind))
    texts = [
        f'<text class="kind" x="{inside}" y="{top + 18:.0f}">{kind}</text>',
        f'<text class="key" x="{inside}" y="{top + 36:.0f}">{escape(_cut(step.key, KEY_CHARACTERS))}</text>',
    ]
    for text, character_count, below, name in (
        (step.detail, DETAIL_CHARACTERS, 53, "detail"),
        (step.figures, FIGURES_CHARACTERS, 72, "figure-line"),
    ):
        if text:
            shown = escape(_cut(text, character_count))
            texts.append(f'<text class="{name}" x="{inside}" y="{top + below:.0f}">{shown}</text>')
    return (
        f'<a href="{escape(step.href)}" class="box {escape(step.kind)} {escape(step.tone)}" '
        f'aria-label="{escape(step.title)}"><rect x="{x:.0f}" y="{top:.0f}" width="{WIDTH}" '
        f'height="{tall}" rx="9"/><rect class="edge" x="{x:.0f}" y="{top + MARGIN:.0f}" width="3" '
        f'height="{tall - 2 * MARGIN}"/>{"".join(texts)}</a>'
    )


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
