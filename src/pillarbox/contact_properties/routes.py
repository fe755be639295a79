"""HTTP routes of contact properties."""

from __future__ import annotations

from functools import partial

from pillarbox.contact_properties import defining, queries, wire
from pillarbox.kernel.http.request import Reply, Request
from pillarbox.kernel.http.routing import Access, route
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.wire.fields import parse
from pillarbox.kernel.wire.paging import PAGING, ListOf, Page, listed


@route(
    "POST",
    "/contact-properties",
    needs=Access.FULL,
    status=201,
    body=wire.NewProperty,
    summary="Create a contact property",
)
async def create(request: Request, db: TeamDb) -> Reply[wire.PropertyRef]:
    new = parse(wire.NewProperty, request.json())
    made = await defining.define(db, request.use(Ids), new.key, new.type, new.fallback_value)
    return Reply(wire.PropertyRef(object="contact_property", id=made))


@route("GET", "/contact-properties", needs=Access.FULL, query=PAGING, summary="List contact properties")
async def index(request: Request, db: TeamDb) -> Reply[ListOf[wire.PropertyItem]]:
    page = Page.read(request.query, default=None)
    return Reply(await listed(partial(queries.page, db), page, wire.item))


@route(
    "GET",
    "/contact-properties/{contact_property_id}",
    needs=Access.FULL,
    summary="Retrieve a contact property",
)
async def show(request: Request, db: TeamDb) -> Reply[wire.FullProperty]:
    return Reply(wire.full(await defining.property_of(db, request.uuid("contact_property_id"))))


@route(
    "PATCH",
    "/contact-properties/{contact_property_id}",
    needs=Access.FULL,
    body=wire.ChangedProperty,
    summary="Update a contact property",
)
async def update(request: Request, db: TeamDb) -> Reply[wire.PropertyRef]:
    changed = parse(wire.ChangedProperty, request.json())
    property_id = request.uuid("contact_property_id")
    await defining.change(db, property_id, changed.fallback_value, changed.key, changed.type)
    return Reply(wire.PropertyRef(object="contact_property", id=property_id))


@route(
    "DELETE",
    "/contact-properties/{contact_property_id}",
    needs=Access.FULL,
    summary="Delete a contact property",
)
async def remove(request: Request, db: TeamDb) -> Reply[wire.DeletedProperty]:
    property_id = request.uuid("contact_property_id")
    await defining.delete(db, request.use(Ids), property_id)
    return Reply(wire.DeletedProperty(object="contact_property", deleted=True, id=property_id))
