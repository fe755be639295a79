"""The slice of metrics: the routes under `/metrics`, and the caches of their answers."""

from __future__ import annotations

from collections.abc import Sequence

from pillarbox.kernel.http.routing import collect
from pillarbox.kernel.slices import Container, Loop, Retention, RetentionItem, Slice
from pillarbox.metrics import routes
from pillarbox.metrics.invariants import INVARIANTS
from pillarbox.metrics.memory import AnswerCache, PieceCache
from pillarbox.metrics.policy import BroadcastNames, MetricsPolicy
from pillarbox.metrics.providers.counting import ProviderCounting, provider_periodic
from pillarbox.metrics.settings import METRICS_CACHE_SECONDS
from pillarbox.metrics.stored import LIFETIME, PieceStore, collect_periodic
from pillarbox.teams.settings import METRICS_RETENTION_DAYS


def _policy(kit: Container) -> MetricsPolicy:
    settings = kit.settings
    memory = PieceCache(0) if settings.database_shards else PieceCache()
    names = kit.find(BroadcastNames) or BroadcastNames()
    cache = AnswerCache(settings[METRICS_CACHE_SECONDS])
    return MetricsPolicy(
        retention_days=settings[METRICS_RETENTION_DAYS],
        cache=cache,
        memory=memory,
        names=names,
        store=kit.find(PieceStore),
    )


def _store(kit: Container) -> PieceStore | None:
    # What is remembered rests on triggers, which distributed tables do not have (docs/decisions/0052).
    return None if kit.settings.database_shards else PieceStore(kit.pool, kit.clock)


def _loops(kit: Container) -> Sequence[Loop]:
    store = kit.find(PieceStore)
    return [] if store is None else [store.run()]


def _counting(kit: Container) -> ProviderCounting:
    return ProviderCounting(kit.pool, kit.clock)


SLICE = Slice(
    name="metrics",
    provides={MetricsPolicy: _policy, PieceStore: _store, ProviderCounting: _counting},
    periodic=lambda kit: provider_periodic(kit.need(ProviderCounting)),
    routes=collect(routes),
    retention=[
        Retention(
            [
                RetentionItem(
                    "pieces of answers about metrics, which are counted anew when asked for", LIFETIME
                )
            ],
            lambda kit: collect_periodic(kit.pool, kit.clock),
        )
    ],
    loops=_loops,
    invariants=INVARIANTS,
)
