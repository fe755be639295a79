"""What the operator has set for the metrics."""

from __future__ import annotations

from dataclasses import dataclass, field

from pillarbox.metrics.cache import Cache
from pillarbox.metrics.memory import PieceCache


@dataclass(frozen=True, slots=True)
class MetricsPolicy:
    """`retention_days` 0: rollups are kept for ever. `memory` is no setting: it changes no answer."""

    retention_days: int
    cache: Cache
    memory: PieceCache = field(default_factory=PieceCache)
