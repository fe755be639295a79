"""HTTP routes of the segments."""

from __future__ import annotations

from functools import partial

from pillarbox.contacts.reading import contact_list
from pillarbox.contacts.wire import ContactItem
from pillarbox.kernel.http.request import Reply, Request
from pillarbox.kernel.http.routing import Access, route
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.wire.fields import parse
from pillarbox.kernel.wire.paging import PAGING, ListOf, Page, listed
from pillarbox.segments import changes, queries, wire


@route("POST", "/segments", needs=Access.FULL, status=201, body=wire.NewSegment, summary="Create a segment")
async def create(request: Request, db: TeamDb) -> Reply[wire.SegmentCreated]:
    wanted = parse(wire.NewSegment, request.json())
    segment = await changes.create(db, request.use(Ids), wanted.name, wanted.conditions)
    return Reply(wire.SegmentCreated(object="segment", id=segment.id, name=segment.name))


@route("GET", "/segments", needs=Access.FULL, query=PAGING, summary="List segments")
async def index(request: Request, db: TeamDb) -> Reply[ListOf[wire.SegmentsSegmentItem]]:
    page = Page.read(request.query, default=None)
    return Reply(await listed(partial(queries.page, db), page, wire.item))


@route("GET", "/segments/{segment_id}", needs=Access.FULL, summary="Retrieve a segment")
async def show(request: Request, db: TeamDb) -> Reply[wire.FullSegment]:
    return Reply(wire.full(await changes.found(db, request.uuid("segment_id"))))


@route(
    "PATCH",
    "/segments/{segment_id}",
    needs=Access.FULL,
    body=wire.ChangedSegment,
    summary="Rename a segment, or change its conditions",
)
async def update(request: Request, db: TeamDb) -> Reply[wire.SegmentsSegmentRef]:
    segment_change = wire.change_of(parse(wire.ChangedSegment, request.json()))
    segment_id = request.uuid("segment_id")
    await changes.change(db, segment_id, segment_change)
    return Reply(wire.SegmentsSegmentRef(object="segment", id=segment_id))


@route("DELETE", "/segments/{segment_id}", needs=Access.FULL, summary="Delete a segment")
async def remove(request: Request, db: TeamDb) -> Reply[wire.SegmentDeleted]:
    segment_id = request.uuid("segment_id")
    await changes.delete(db, request.use(Ids), segment_id)
    return Reply(wire.SegmentDeleted(object="segment", id=segment_id, deleted=True))


@route(
    "GET",
    "/segments/{segment_id}/contacts",
    needs=Access.FULL,
    query=PAGING,
    summary="List the contacts of a segment",
)
async def contacts(request: Request, db: TeamDb) -> Reply[ListOf[ContactItem]]:
    page = Page.read(request.query, default=None)
    segment = await changes.found(db, request.uuid("segment_id"))
    return Reply(await contact_list(db, page, request.at, segment.id))
