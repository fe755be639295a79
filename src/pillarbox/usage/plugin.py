"""The slice of usage: how much a team has sent and may send."""

from __future__ import annotations

from pillarbox.kernel.http.pipeline import Meter
from pillarbox.kernel.http.routing import collect
from pillarbox.kernel.slices import Retention, RetentionItem, Slice
from pillarbox.teams.settings import MOST_DOMAINS
from pillarbox.usage import routes
from pillarbox.usage.jobs import KEPT, usage_periodic
from pillarbox.usage.meter import UsageMeter
from pillarbox.usage.quotas import Quotas
from pillarbox.usage.wire import UsageLimits

SLICE = Slice(
    name="usage",
    provides={
        UsageMeter: lambda kit: UsageMeter(kit.pool, kit.clock),
        Meter: lambda kit: kit.need(UsageMeter),
        Quotas: lambda kit: Quotas(kit.clock, kit.need(UsageMeter).note),
        UsageLimits: lambda kit: UsageLimits(kit.settings.rate_limit, kit.settings[MOST_DOMAINS]),
    },
    routes=collect(routes),
    retention=[
        Retention(
            [RetentionItem("counts of usage by day", KEPT)], lambda kit: usage_periodic(kit.pool, kit.clock)
        )
    ],
)
