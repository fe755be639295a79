"""HTTP routes of acts on many contacts."""

from __future__ import annotations

from pillarbox.contacts.bulk_acts import queries, wire
from pillarbox.contacts.bulk_acts.acts import BulkActs, newest
from pillarbox.contacts.conditions.membership import condition_by_segment
from pillarbox.kernel.http.request import Reply, Request
from pillarbox.kernel.http.routing import Access, route
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.wire.fields import parse
from pillarbox.kernel.wire.paging import PAGING, ListOf, Page, envelope


@route(
    "POST",
    "/contacts/bulk-acts",
    needs=Access.FULL,
    status=202,
    body=wire.NewBulkActBody,
    problems=(404,),
    summary="Change many contacts",
)
async def create(request: Request, db: TeamDb) -> Reply[wire.BulkActRef]:
    body = parse(wire.NewBulkActBody, request.json())
    conditions = await condition_by_segment(db, body.in_segment)
    selection = wire.selection_of(body, conditions, request.at)
    act_id = await request.use(BulkActs).begin(db, body.action, body.segment_id, selection)
    return Reply(wire.BulkActRef(object="bulk_act", id=act_id))


@route("GET", "/contacts/bulk-acts", needs=Access.FULL, query=PAGING, summary="List bulk acts on contacts")
async def index(request: Request, db: TeamDb) -> Reply[ListOf[wire.FullBulkAct]]:
    page = Page.read(request.query)
    return Reply(envelope(await queries.page(db, page), page, wire.shown))


@route("GET", "/contacts/bulk-acts/{bulk_act_id}", needs=Access.FULL, summary="Retrieve a bulk act")
async def show(request: Request, db: TeamDb) -> Reply[wire.FullBulkAct]:
    return Reply(wire.shown(await newest(db, request.uuid("bulk_act_id"))))


@route(
    "POST",
    "/contacts/bulk-acts/{bulk_act_id}/stop",
    needs=Access.FULL,
    problems=(409,),
    summary="Stop a bulk act",
)
async def stop(request: Request, db: TeamDb) -> Reply[wire.BulkActRef]:
    act_id = request.uuid("bulk_act_id")
    await request.use(BulkActs).stop(db, act_id)
    return Reply(wire.BulkActRef(object="bulk_act", id=act_id))
