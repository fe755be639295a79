"""The HTTP routes of the metrics (metrics.md). It is matched before `/emails/{email_id}`."""

from __future__ import annotations

import asyncio

import asyncpg

from pillarbox.kernel.http.request import Reply, Request
from pillarbox.kernel.http.routing import Access, route
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.metrics import answering, memory, question, read, wire
from pillarbox.metrics.policy import MetricsPolicy

SCALARS = ("start_date", "end_date", "timezone", "granularity")
LISTS = ("metrics", "dimensions", "domain_id", "email_id", "broadcast_id")
PARAMETERS = {
    "start_date": str,
    "end_date": str,
    "timezone": str,
    "granularity": wire.Granularity,
    "metrics": list[wire.Metric],
    "dimensions": list[wire.Dimension],
    "domain_id": wire.SomeIds,
    "email_id": wire.SomeIds,
    "broadcast_id": wire.SomeIds,
}


@route(
    "GET",
    "/emails/metrics",
    needs=Access.FULL,
    query=PARAMETERS,
    summary="Count what became of emails",
)
async def metrics(request: Request, db: TeamDb) -> Reply[wire.Metrics]:
    policy = request.use(MetricsPolicy)
    if request.asked is not None:
        request.asked.is_open = True
    own = request.known.metrics_days
    asked = question.read(request.query, request.at, policy.retention_days if own is None else own)
    key = _normal(request) if policy.cache.is_used else ()
    body = policy.cache.get(db.team_id, key, request.at)
    if body is None:
        found = read.cut(asked)
        names = await policy.names.of(db, asked.broadcasts) if asked.by("broadcast") else wire.NO_NAMES
        pool = request.use(asyncpg.Pool)
        later = asyncio.get_running_loop().call_soon
        body = await answering.answer(
            pool, db.team_id, asked, found, policy.memory, names, policy.store, later
        )
        policy.cache.put(db.team_id, key, request.at, body)
    return Reply(body)


def _normal(request: Request) -> memory.Question:
    """Return the question without the present: lists without repetitions, of all else what counts."""
    query = request.query
    single = tuple((query.text(name) or "",) for name in SCALARS)
    return (*single, *(tuple(query.items(name)) for name in LISTS))
