"""What metrics bring: the routes under `/metrics`, and how long their answers are kept."""

from __future__ import annotations

from pillarbox.kernel.http.routing import collect
from pillarbox.kernel.slices import Kit, Slice
from pillarbox.metrics import routes
from pillarbox.metrics.cache import Cache
from pillarbox.metrics.invariants import INVARIANTS
from pillarbox.metrics.memory import PieceCache
from pillarbox.metrics.policy import BroadcastNames, MetricsPolicy
from pillarbox.metrics.settings import METRICS_CACHE_SECONDS
from pillarbox.teams.settings import METRICS_RETENTION_DAYS


def _policy(kit: Kit) -> MetricsPolicy:
    settings = kit.settings
    # What is remembered rests on triggers, which distributed tables do not have (docs/decisions/0052).
    memory = PieceCache(0) if settings.database_shards else PieceCache()
    names = kit.find(BroadcastNames) or BroadcastNames()
    return MetricsPolicy(
        settings[METRICS_RETENTION_DAYS], Cache(settings[METRICS_CACHE_SECONDS]), memory, names
    )


SLICE = Slice(
    name="metrics", provides={MetricsPolicy: _policy}, routes=collect(routes), invariants=INVARIANTS
)
