"""What metrics bring: the routes under `/metrics`, and how long their answers are kept."""

from __future__ import annotations

from pillarbox.kernel.http.routing import collect
from pillarbox.kernel.slices import Kit, Slice
from pillarbox.metrics import routes
from pillarbox.metrics.cache import Cache
from pillarbox.metrics.policy import MetricsPolicy


def _policy(kit: Kit) -> MetricsPolicy:
    settings = kit.settings
    return MetricsPolicy(settings.metrics_retention_days, Cache(settings.metrics_cache_seconds))


SLICE = Slice(name="metrics", provides={MetricsPolicy: _policy}, routes=collect(routes))
