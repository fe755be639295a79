"""The metrics of this process: plain numbers in memory, written out once a second for the supervisor.

Counting costs some hundred nanoseconds, because nothing is shared while it happens. `MetricsFile` writes all
numbers to a file of this process; the supervisor adds up the files of its workers and answers Prometheus
(`kernel.observability.prometheus`). A process that is killed takes at most its last second of counts with it.

A metric is a module constant beside the code that it counts. They carry no personal data and no
team, and their labels have few values: the pattern of a route, never a path.

Not thread-safe: count from the event loop's thread.
"""

from __future__ import annotations

import asyncio
import os
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import msgspec

from pillarbox.kernel.clock import Clock
from pillarbox.kernel.observability.loop_failures import LoopFailures

Labels = tuple[str, ...]

WRITE_EVERY = 1.0
SUFFIX = ".metrics"

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Bounds for durations."""

SIZES = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0)
"""Bounds for the number of things in a batch."""


SUM, LEAST, GREATEST = "sum", "least", "greatest"


class Numbers(msgspec.Struct, array_like=True):
    """One metric as it is written: `values` are a number for each set of labels, for a histogram the counts
    between its bounds and behind the last one, and the sum."""

    name: str
    kind: str
    meaning: str
    labels: Labels
    bounds: tuple[float, ...]
    values: list[tuple[Labels, list[float]]]
    over: str = SUM
    """How the supervisor joins the values of several processes: their sum, or the least or greatest."""


class Counter:
    """A number that only grows. `known` are sets of labels that are there with 0 from the start: an alert on
    an increase does not see the first one of a set that appears with it."""

    __slots__ = ("_labels", "_meaning", "_name", "_values")
    kind = "counter"

    def __init__(self, name: str, meaning: str, labels: Labels = (), known: Iterable[Labels] = ()) -> None:
        self._name = name
        self._meaning = meaning
        self._labels = labels
        self._values: dict[Labels, float] = dict.fromkeys(known, 0) if labels else {(): 0}
        _register(name, self)

    def add(self, amount: float = 1, labels: Labels = ()) -> None:
        self._values[labels] = self._values.get(labels, 0) + amount

    def value(self, labels: Labels = ()) -> float:
        """Return the count of this process for these labels; 0 where nothing was counted."""
        return self._values.get(labels, 0)

    def numbers(self) -> Numbers:
        values = [(labels, [value]) for labels, value in self._values.items()]
        return Numbers(
            name=self._name,
            kind=self.kind,
            meaning=self._meaning,
            labels=self._labels,
            bounds=(),
            values=values,
        )


class Gauge:
    """A number that is read off when it is written: `read` gives it for each set of labels. The supervisor
    shows the sum over its workers, or what else `over` says; that of a dead process counts no more."""

    __slots__ = ("_labels", "_meaning", "_name", "_over", "read")
    kind = "gauge"

    def __init__(self, name: str, meaning: str, labels: Labels = (), *, over: str = SUM) -> None:
        self._over = over
        self._name = name
        self._meaning = meaning
        self._labels = labels
        self.read: Callable[[], dict[Labels, float]] = dict
        _register(name, self)

    def numbers(self) -> Numbers:
        # A bool is a number to Python, but not in JSON.
        values = [(labels, [float(value)]) for labels, value in self.read().items()]
        return Numbers(
            name=self._name,
            kind=self.kind,
            meaning=self._meaning,
            labels=self._labels,
            bounds=(),
            values=values,
            over=self._over,
        )


class Histogram:
    """How often a value fell between which bounds."""

    __slots__ = ("_bounds", "_cells", "_labels", "_meaning", "_name")
    kind = "histogram"

    def __init__(self, name: str, meaning: str, bounds: Sequence[float], labels: Labels = ()) -> None:
        self._name = name
        self._meaning = meaning
        self._labels = labels
        self._bounds = tuple(bounds)
        self._cells: dict[Labels, list[float]] = {}
        _register(name, self)

    def observe(self, value: float, labels: Labels = ()) -> None:
        cells = self._cells.get(labels)
        if cells is None:
            cells = self._cells[labels] = [0.0] * (len(self._bounds) + 2)
        cells[bisect_left(self._bounds, value)] += 1
        cells[-1] += value

    def count(self, labels: Labels = ()) -> int:
        """Return how many values were seen in this process."""
        return int(sum(self._cells.get(labels, (0,))[:-1]))

    def numbers(self) -> Numbers:
        return Numbers(
            name=self._name,
            kind=self.kind,
            meaning=self._meaning,
            labels=self._labels,
            bounds=self._bounds,
            values=list(self._cells.items()),
        )


Metric = Counter | Gauge | Histogram

_registered: dict[str, Metric] = {}
_encode = msgspec.json.Encoder().encode


def _register(name: str, metric: Metric) -> None:
    if name in _registered:
        raise ValueError(f"two metrics are named {name}")
    _registered[name] = metric


class MetricsFile:
    """The file of this process in the supervisor's folder."""

    def __init__(self, folder: Path, clock: Clock) -> None:
        self._clock = clock
        self._path = folder / f"{os.getpid()}{SUFFIX}"
        self._draft = folder / f"{os.getpid()}.draft"

    def write(self) -> None:
        """Write down all numbers as they are now. Needs no sync: the file does not outlive the supervisor."""
        self._put(_all_numbers())

    async def keep(self) -> None:
        """Write once a second until cancelled. A busy disk may take half a second for a rename, so the loop
        does not wait for it."""
        failures = LoopFailures("metrics.write")
        while True:
            await failures.attempt(asyncio.to_thread(self._put, _all_numbers()))
            await self._clock.sleep(max(WRITE_EVERY, failures.pause))

    def _put(self, numbers: bytes) -> None:
        self._draft.write_bytes(numbers)
        self._draft.replace(self._path)


def all_numbers() -> list[Numbers]:
    """Return every metric of this process as it is now."""
    return [metric.numbers() for metric in _registered.values()]


def _all_numbers() -> bytes:
    return _encode(all_numbers())
