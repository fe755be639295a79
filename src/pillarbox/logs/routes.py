"""The HTTP routes of the log of requests (logs.md section 2). Its own requests are not in it."""

from __future__ import annotations

from pillarbox.kernel.http.request import Reply, Request
from pillarbox.kernel.http.routing import Access, route
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.wire.paging import PAGING, ListOf, Page, envelope
from pillarbox.kernel.wire.problems import NotFound
from pillarbox.logs import queries, reading, wire
from pillarbox.logs.policy import LogPolicy


@route(
    "GET",
    "/logs",
    needs=Access.FULL,
    query=PAGING,
    logged=False,
    summary="List requests",
)
async def index(request: Request, db: TeamDb) -> Reply[ListOf[wire.LogsListItem]]:
    page = Page.read(request.query)
    policy = request.use(LogPolicy)
    oldest = policy.oldest(policy.days_of(request.known), request.at)
    return Reply(envelope(await queries.page(db, page, oldest), page, wire.listed))


@route("GET", "/logs/{log_id}", needs=Access.FULL, logged=False, summary="Retrieve a request")
async def show(request: Request, db: TeamDb) -> Reply[wire.Log]:
    policy = request.use(LogPolicy)
    oldest = policy.oldest(policy.days_of(request.known), request.at)
    found = await queries.get(db, request.uuid("log_id"), oldest)
    if found is None:
        raise NotFound("Log")
    return Reply(wire.log(found, await reading.request_body(db, found)))
