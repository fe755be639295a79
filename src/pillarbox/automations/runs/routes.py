"""HTTP routes of runs."""

from __future__ import annotations

from pillarbox.automations.runs import reading, wire
from pillarbox.kernel.http.request import Reply, Request
from pillarbox.kernel.http.routing import Access, route
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.wire.paging import PAGING, ListOf, Page


@route(
    "GET",
    "/automations/{automation_id}/runs",
    needs=Access.FULL,
    query={**PAGING, "status": str},
    summary="List the runs of an automation",
)
async def index(request: Request, db: TeamDb) -> Reply[ListOf[wire.RunItem]]:
    page, only = Page.read(request.query), reading.wanted(request.query.last("status"))
    return Reply(await reading.listed(db, request.uuid("automation_id"), page, only))


@route(
    "GET",
    "/automations/{automation_id}/runs/{run_id}",
    needs=Access.FULL,
    summary="Retrieve a run",
)
async def show(request: Request, db: TeamDb) -> Reply[wire.FullRun]:
    return Reply(await reading.shown(db, request.uuid("automation_id"), request.uuid("run_id")))
