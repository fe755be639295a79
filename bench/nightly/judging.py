"""What counts as a fall of a ratio. Values in, values out.

A ratio is measured in turns. Its median is what was found, and the interval that `bench.turns` draws says
how far the noise of the turns may have moved it.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from bench.kit.spread import between

ALLOWED = 0.05
"""What a ratio may lose before it has fallen."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A ratio that is measured. Where less is better, a rise is what counts as a fall."""

    name: str
    more_is_better: bool = True


@dataclass(frozen=True, slots=True)
class Seen:
    """The median of the turns, and between what it lies."""

    median: float
    low: float
    high: float
    turns: int

    @property
    def noise(self) -> float:
        """Half the width of the interval, as a share of the median."""
        return (self.high - self.low) / 2 / self.median

    @property
    def is_noisy(self) -> bool:
        """Whether a fall of the allowed size could not be told from noise."""
        return self.noise > ALLOWED


class Verdict(Enum):
    KEPT = "kept"
    FELL = "FELL"
    INCONCLUSIVE = "inconclusive"
    UNRECORDED = "not recorded for this machine"


def seen(ratios: Sequence[float]) -> Seen:
    """What these turns say."""
    low, high = between(ratios)
    return Seen(statistics.median(ratios), low, high, len(ratios))


def kept(found: Seen, recorded: float, *, more_is_better: bool = True) -> Seen:
    """The share of the recorded ratio that is still there, in the direction that is good: less than 1 is
    worse."""
    if more_is_better:
        return Seen(found.median / recorded, found.low / recorded, found.high / recorded, found.turns)
    return Seen(recorded / found.median, recorded / found.high, recorded / found.low, found.turns)


def judged(found: Seen, recorded: float | None, *, more_is_better: bool = True) -> Verdict:
    """A fall is one where all of the interval lies below 0.95 of the recorded ratio. Where only the median
    does, the turns do not say."""
    if recorded is None:
        return Verdict.UNRECORDED
    share = kept(found, recorded, more_is_better=more_is_better)
    if share.high < 1 - ALLOWED:
        return Verdict.FELL
    return Verdict.INCONCLUSIVE if share.median < 1 - ALLOWED else Verdict.KEPT


def is_dearer(ratio: Seen) -> bool:
    """Whether the same work costs more than the allowed part beyond what it cost in the other checkout, and
    not by chance."""
    return ratio.median > 1 + ALLOWED and ratio.low > 1
