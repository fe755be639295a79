"""How the database connections of this process are used."""

from __future__ import annotations

from collections.abc import Mapping

import asyncpg

from pillarbox.kernel.observability.metrics import Gauge, Labels

POOL = Gauge(
    "pillarbox_pool_connections",
    "Database connections by pool: busy, idle, and how many there may be (most).",
    ("pool", "state"),
)


def watch(pools: Mapping[str, asyncpg.Pool]) -> None:
    """Show these pools, under these names."""

    def read() -> dict[Labels, float]:
        found: dict[Labels, float] = {}
        for name, pool in pools.items():
            idle = pool.get_idle_size()
            found[name, "idle"] = idle
            found[name, "busy"] = pool.get_size() - idle
            found[name, "most"] = pool.get_max_size()
        return found

    POOL.read = read
