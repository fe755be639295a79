"""What the operator has set for the metrics."""

from __future__ import annotations

from dataclasses import dataclass

from pillarbox.metrics.cache import Cache


@dataclass(frozen=True, slots=True)
class MetricsPolicy:
    """`retention_days` 0: rollups are kept for ever."""

    retention_days: int
    cache: Cache
