"""The HTTP routes of usage (conventions section 12)."""

from __future__ import annotations

from pillarbox.kernel.clock import Clock
from pillarbox.kernel.http.request import Reply, Request
from pillarbox.kernel.http.routing import Access, route
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.usage import queries, wire
from pillarbox.usage.meter import UsageMeter
from pillarbox.usage.windows import month_of
from pillarbox.usage.wire import UsageLimits


@route("GET", "/usage", needs=Access.ANY, summary="Show what is used, and how much may be used")
async def usage(request: Request, db: TeamDb) -> Reply[wire.Usage]:
    limits = request.use(UsageLimits)
    own = request.known.rate_limit
    used = await request.use(UsageMeter).read(db.source, db.team_id)
    now = request.use(Clock).now()  # type: ignore[type-abstract]
    rate_limit = limits.rate_limit if own is None else own
    return Reply(wire.usage(used, await queries.owned(db, month_of(now)), limits, rate_limit, now))
