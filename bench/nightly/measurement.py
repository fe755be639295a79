"""What is measured in turns."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import NamedTuple

from bench.kit.results import Report
from bench.nightly.judging import Figure

Turn = Callable[[], dict[Figure, float]]
"""One turn of both sides; the ratios that it found."""


class Measurement(NamedTuple):
    """`open` starts both sides, which stay up side by side, and yields the work of one turn, which finds all
    of the figures."""

    open: Callable[[Report], AbstractContextManager[Turn]]
    figures: tuple[Figure, ...]
