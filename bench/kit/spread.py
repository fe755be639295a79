"""How far a median may lie from the true one."""

from __future__ import annotations

import random
import statistics
from collections.abc import Sequence

DRAWN = 1000


def between(ratios: Sequence[float]) -> tuple[float, float]:
    """Between what the median lies, drawn again and again from the turns: 95 % of the drawn medians."""
    chance = random.Random(1)
    drawn = sorted(statistics.median(chance.choices(ratios, k=len(ratios))) for _ in range(DRAWN))
    return drawn[DRAWN // 40], drawn[-1 - DRAWN // 40]
