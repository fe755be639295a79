"""The settings of metrics."""

from __future__ import annotations

from typing import Any

from pillarbox.kernel.settings import kinds
from pillarbox.kernel.settings.setting import Setting

METRICS_CACHE_SECONDS = Setting(
    name="metrics_cache_seconds",
    parse=kinds.whole_number(0, 900),
    shape="SECONDS",
    default="0",
    meaning="For how long an answer of `GET /emails/metrics` may be given again; 0 computes each.",
)

SETTINGS: tuple[Setting[Any], ...] = (METRICS_CACHE_SECONDS,)
