"""HTTP routes of events."""

from __future__ import annotations

from functools import partial

from msgspec import UNSET

from pillarbox.events import definition_queries, definitions, wire
from pillarbox.events.sending import EventRefused, EventSender
from pillarbox.kernel.http.request import Reply, Request
from pillarbox.kernel.http.routing import MIB, Access, route
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.wire.fields import parse, parse_value
from pillarbox.kernel.wire.paging import PAGING, ListOf, Page, listed
from pillarbox.kernel.wire.problems import MissingField, at_index


@route("POST", "/events", needs=Access.FULL, status=201, body=wire.NewDefinition, summary="Create an event")
async def create(request: Request, db: TeamDb) -> Reply[wire.EventsEventRef]:
    wanted = parse(wire.NewDefinition, request.json())
    name = definitions.event_name(wanted.name, "name")
    definitions.check_schema(wanted.schema or {})
    event_id = await definitions.define(db, request.use(Ids), name, wanted.schema)
    return Reply(wire.EventsEventRef(object="event", id=event_id))


@route("GET", "/events", needs=Access.FULL, query=PAGING, summary="List events")
async def index(request: Request, db: TeamDb) -> Reply[ListOf[wire.EventsEventItem]]:
    page = Page.read(request.query)
    return Reply(await listed(partial(definition_queries.page, db), page, wire.item))


@route("GET", "/events/{identifier}", needs=Access.FULL, by_name=True, summary="Retrieve an event")
async def show(request: Request, db: TeamDb) -> Reply[wire.EventDefinition]:
    return Reply(wire.full(await definitions.found(db, request.param("identifier"))))


@route(
    "PATCH",
    "/events/{identifier}",
    needs=Access.FULL,
    body=wire.ChangedDefinition,
    by_name=True,
    summary="Update an event",
)
async def update(request: Request, db: TeamDb) -> Reply[wire.EventsEventRef]:
    wanted = parse(wire.ChangedDefinition, request.json())
    if wanted.schema is UNSET:
        raise MissingField("schema")
    definitions.check_schema(wanted.schema or {})
    event_id = await definitions.change(db, request.param("identifier"), wanted.schema, request.at)
    return Reply(wire.EventsEventRef(object="event", id=event_id))


@route("DELETE", "/events/{identifier}", needs=Access.FULL, by_name=True, summary="Delete an event")
async def remove(request: Request, db: TeamDb) -> Reply[wire.EventDeleted]:
    event_id = await definitions.delete(db, request.param("identifier"))
    return Reply(wire.EventDeleted(object="event", id=event_id, deleted=True))


@route(
    "POST",
    "/events/send",
    needs=Access.FULL,
    status=202,
    body=wire.NewEvents,
    limit=12 * MIB,
    transaction=False,
    array=True,
    problems=(404,),
    summary="Send an event, or up to 100",
)
async def send(request: Request, db: TeamDb) -> Reply[wire.EventSent | wire.EventsSent]:
    events = parse_value(wire.NewEvents, request.json())
    is_array = isinstance(request.body, list)
    try:
        await request.use(EventSender).send(db.team_id, events)
    except EventRefused as refused:
        raise (at_index(*refused.args) if is_array else refused.problem) from None
    return Reply(wire.sent(events, is_array=is_array))
