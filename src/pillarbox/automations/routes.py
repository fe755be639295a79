"""HTTP routes of the automations."""

from __future__ import annotations

from typing import Final

from pillarbox.automations import queries, wire
from pillarbox.automations.changes import AutomationChanges, found
from pillarbox.automations.queries import Status
from pillarbox.kernel.http.request import Reply, Request
from pillarbox.kernel.http.routing import Access, route
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.wire.paging import PAGING, ListOf, Page, envelope

MOST_BODY: Final = 5 * 1024 * 1024


@route(
    "POST",
    "/automations",
    needs=Access.FULL,
    status=201,
    body=wire.NewAutomation,
    limit=MOST_BODY,
    parses_first=True,
    summary="Create an automation",
)
async def create(request: Request, db: TeamDb) -> Reply[wire.AutomationRef]:
    automation_id = await request.use(AutomationChanges).create(db, request.wanted)
    return Reply(wire.AutomationRef(object="automation", id=automation_id))


@route(
    "GET",
    "/automations",
    needs=Access.FULL,
    query={**PAGING, "status": Status},
    summary="List automations",
)
async def index(request: Request, db: TeamDb) -> Reply[ListOf[wire.AutomationItem]]:
    page = Page.read(request.query)
    status = request.query.choice("status", *wire.STATUSES)
    return Reply(envelope(await queries.page(db, page, status), page, wire.item))


@route("GET", "/automations/{automation_id}", needs=Access.FULL, summary="Retrieve an automation")
async def show(request: Request, db: TeamDb) -> Reply[wire.FullAutomation]:
    return Reply(wire.full(await found(db, request.uuid("automation_id"))))


@route(
    "PATCH",
    "/automations/{automation_id}",
    needs=Access.FULL,
    body=wire.ChangedAutomation,
    limit=MOST_BODY,
    parses_first=True,
    summary="Change an automation",
)
async def update(request: Request, db: TeamDb) -> Reply[wire.AutomationRef]:
    automation_id = request.uuid("automation_id")
    await request.use(AutomationChanges).change(db, automation_id, request.wanted)
    return Reply(wire.AutomationRef(object="automation", id=automation_id))


@route("DELETE", "/automations/{automation_id}", needs=Access.FULL, summary="Delete an automation")
async def remove(request: Request, db: TeamDb) -> Reply[wire.AutomationDeleted]:
    automation_id = request.uuid("automation_id")
    await request.use(AutomationChanges).delete(db, automation_id)
    return Reply(wire.AutomationDeleted(object="automation", id=automation_id, deleted=True))


@route(
    "POST",
    "/automations/{automation_id}/duplicate",
    needs=Access.FULL,
    status=201,
    summary="Duplicate an automation",
)
async def duplicate(request: Request, db: TeamDb) -> Reply[wire.AutomationRef]:
    copy_id = await request.use(AutomationChanges).duplicate(db, request.uuid("automation_id"))
    return Reply(wire.AutomationRef(object="automation", id=copy_id))


@route("POST", "/automations/{automation_id}/stop", needs=Access.FULL, summary="Stop an automation")
async def stop(request: Request, db: TeamDb) -> Reply[wire.AutomationStopped]:
    automation_id = request.uuid("automation_id")
    await request.use(AutomationChanges).stop(db, automation_id)
    return Reply(wire.AutomationStopped(object="automation", id=automation_id, status="disabled"))
