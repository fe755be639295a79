"""Places the steps of a graph by levels, each below all that lead to it.

A connection that passes levels gets a point in each of them, so it goes around the steps there. Steps of a
level stand in the order of their neighbours' means, and as near to them as their widths allow. Any graph can
be placed, one with a cycle or with steps that nothing leads to as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final, NamedTuple

WIDTH: Final = 176
GAP_X: Final = 16
GAP_Y: Final = 44
MARGIN: Final = 8
POINT: Final = 14
"""Width of a place where a connection passes a level."""

MOST_POINTS: Final = 600
"""With more such places connections go straight from step to step."""

SWEEPS: Final = 4


class PlacedGraph(NamedTuple):
    """Where the steps are (the middle of each one's upper side), the points of each connection, and the size
    of the whole."""

    steps: Sequence[tuple[float, float]]
    ways: Sequence[Sequence[tuple[float, float]]]
    width: float
    height: float


def placed(count: int, connections: Sequence[tuple[int, int]], height: int) -> PlacedGraph:
    """Return where `count` steps of this height with these connections are drawn."""
    levels = levels_of(count, connections)
    chains = _chains(count, levels, connections)
    places = levels + [level for chain in chains for level in chain.levels]
    rows: list[list[int]] = [[] for _ in range(max(places, default=-1) + 1)]
    for item, level in enumerate(places):
        rows[level].append(item)
    links = [pair for chain in chains for pair in chain.pairs]
    _order(rows, links)
    middles = _middles(rows, links, count)
    left = min((x - _size(item, count) / 2 for item, x in enumerate(middles)), default=0.0)
    right = max((x + _size(item, count) / 2 for item, x in enumerate(middles)), default=0.0)
    shift = MARGIN - left
    points = [
        (x + shift, MARGIN + level * (height + GAP_Y)) for x, level in zip(middles, places, strict=True)
    ]
    return PlacedGraph(
        points[:count],
        [_way(chain, points, height) for chain in chains],
        right - left + 2 * MARGIN,
        2 * MARGIN + max(0, len(rows) * (height + GAP_Y) - GAP_Y),
    )


def levels_of(count: int, connections: Sequence[tuple[int, int]]) -> list[int]:
    """Return the level of each step: one below the lowest of those that lead to it. Steps of a cycle are
    below all others."""
    incoming, levels = [0] * count, [0] * count
    following: list[list[int]] = [[] for _ in range(count)]
    for source, target in set(connections):
        incoming[target] += 1
        following[source].append(target)
    free = [step for step in range(count) if not incoming[step]]
    for step in free:
        for target in following[step]:
            levels[target] = max(levels[target], levels[step] + 1)
            incoming[target] -= 1
            if not incoming[target]:
                free.append(target)
    lowest = max((levels[step] for step in free), default=-1)
    for number, step in enumerate(sorted(set(range(count)) - set(free)), 1):
        levels[step] = lowest + number
    return levels


class _Chain(NamedTuple):
    """A connection: its ends, and its points between with their levels."""

    source: int
    target: int
    points: list[int]
    levels: list[int]

    @property
    def pairs(self) -> list[tuple[int, int]]:
        ends = [self.source, *self.points, self.target]
        return list(pairwise(ends))


def _chains(count: int, levels: Sequence[int], connections: Sequence[tuple[int, int]]) -> list[_Chain]:
    passes = sum(max(0, levels[target] - levels[source] - 1) for source, target in connections)
    result, next_point = [], count
    for source, target in connections:
        passed = list(range(levels[source] + 1, levels[target])) if passes <= MOST_POINTS else []
        points = list(range(next_point, next_point + len(passed)))
        next_point += len(passed)
        result.append(_Chain(source, target, points, passed))
    return result


def _order(rows: Sequence[list[int]], links: Sequence[tuple[int, int]]) -> None:
    """Put each row into the order of its neighbours' means, from above and from below in turn."""
    above, below = _neighbours(links)
    for sweep in range(SWEEPS):
        is_down = sweep % 2 == 0
        neighbours, order = (above, rows[1:]) if is_down else (below, list(reversed(rows[:-1])))
        index = {item: place for row in rows for place, item in enumerate(row)}
        for row in order:
            means = {item: _mean([index[near] for near in neighbours.get(item, ())]) for item in row}
            places = {item: index[item] if mean is None else mean for item, mean in means.items()}
            row.sort(key=places.__getitem__)
            index.update((item, place) for place, item in enumerate(row))


def _middles(rows: Sequence[Sequence[int]], links: Sequence[tuple[int, int]], count: int) -> list[float]:
    """Return the middle of each item, as near to its neighbours as the widths in its row allow."""
    above, below = _neighbours(links)
    middles = [0.0] * sum(map(len, rows))
    for row in rows:
        for item, middle in zip(row, _apart(row, [0.0] * len(row), count), strict=True):
            middles[item] = middle
    for sweep in range(SWEEPS + 1):
        is_down = sweep % 2 == 0
        neighbours = above if is_down else below
        for row in rows if is_down else reversed(rows):
            near = [_mean([middles[other] for other in neighbours.get(item, ())]) for item in row]
            wishes = [middles[item] if mean is None else mean for item, mean in zip(row, near, strict=True)]
            for item, middle in zip(row, _apart(row, wishes, count), strict=True):
                middles[item] = middle
    return middles


def _apart(row: Sequence[int], wishes: Sequence[float], count: int) -> list[float]:
    """Return places in this order, nearest to the wishes (least squares), at which no two overlap."""
    offsets, reached = [], 0.0
    for before, item in zip([None, *row], row, strict=False):
        if before is not None:
            reached += (_size(before, count) + _size(item, count)) / 2 + GAP_X
        offsets.append(reached)
    groups: list[tuple[float, int]] = []
    for wish, offset in zip(wishes, offsets, strict=True):
        groups.append((wish - offset, 1))
        while len(groups) > 1 and groups[-2][0] > groups[-1][0]:
            (first, one), (second, two) = groups[-2:]
            groups[-2:] = [((first * one + second * two) / (one + two), one + two)]
    bases = [base for base, members in groups for _ in range(members)]
    return [base + offset for base, offset in zip(bases, offsets, strict=True)]


def _neighbours(links: Sequence[tuple[int, int]]) -> tuple[dict[int, list[int]], dict[int, list[int]]]:
    above: dict[int, list[int]] = {}
    below: dict[int, list[int]] = {}
    for source, target in links:
        above.setdefault(target, []).append(source)
        below.setdefault(source, []).append(target)
    return above, below


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _size(item: int, count: int) -> int:
    return WIDTH if item < count else POINT


def _way(chain: _Chain, points: Sequence[tuple[float, float]], height: int) -> list[tuple[float, float]]:
    """Return the points of a connection: from the lower side of a step to the upper side of the other, past
    both sides of each level between."""
    x, y = points[chain.source]
    way = [(x, y + height)]
    for point in chain.points:
        x, y = points[point]
        way += [(x, y), (x, y + height)]
    return [*way, points[chain.target]]
