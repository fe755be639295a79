"""HTTP routes of the broadcasts."""

from __future__ import annotations

from functools import partial

from pillarbox.broadcasts import queries, wire
from pillarbox.broadcasts.store import Broadcasts, found
from pillarbox.kernel.http.request import Reply, Request
from pillarbox.kernel.http.routing import Access, TokenScope, route
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.wire.fields import parse
from pillarbox.kernel.wire.paging import PAGING, ListOf, Page, listed

MOST_BODY = 10 * 1024 * 1024


@route(
    "POST",
    "/broadcasts",
    needs=Access.FULL,
    status=201,
    body=wire.NewBroadcast,
    limit=MOST_BODY,
    problems=(403, 404),
    summary="Create a broadcast",
)
async def create(request: Request, db: TeamDb) -> Reply[wire.CreatedBroadcast]:
    wanted = parse(wire.NewBroadcast, request.json())
    broadcast_id = await request.use(Broadcasts).create(db, request.known, wanted)
    return Reply(wire.CreatedBroadcast(id=broadcast_id, object="broadcast"))


@route("GET", "/broadcasts", needs=Access.FULL, query=PAGING, summary="List broadcasts")
async def index(request: Request, db: TeamDb) -> Reply[ListOf[wire.BroadcastItem]]:
    page = Page.read(request.query, default=None)
    return Reply(await listed(partial(queries.page, db), page, wire.item))


@route("GET", "/broadcasts/{broadcast_id}", needs=Access.FULL, summary="Retrieve a broadcast")
async def show(request: Request, db: TeamDb) -> Reply[wire.FullBroadcast]:
    return Reply(wire.full(await found(db, request.uuid("broadcast_id"))))


@route(
    "PATCH",
    "/broadcasts/{broadcast_id}",
    needs=Access.FULL,
    body=wire.ChangedBroadcast,
    limit=MOST_BODY,
    problems=(403,),
    summary="Change a broadcast",
)
async def update(request: Request, db: TeamDb) -> Reply[wire.CreatedBroadcast]:
    wanted, broadcast_id = parse(wire.ChangedBroadcast, request.json()), request.uuid("broadcast_id")
    await request.use(Broadcasts).change(db, request.known, broadcast_id, wanted.changes())
    return Reply(wire.CreatedBroadcast(id=broadcast_id, object="broadcast"))


@route(
    "DELETE",
    "/broadcasts/{broadcast_id}",
    needs=Access.FULL,
    problems=(403,),
    summary="Delete a broadcast",
)
async def remove(request: Request, db: TeamDb) -> Reply[wire.BroadcastDeleted]:
    broadcast_id = request.uuid("broadcast_id")
    await request.use(Broadcasts).delete(db, broadcast_id)
    return Reply(wire.BroadcastDeleted(object="broadcast", id=broadcast_id, deleted=True))


@route(
    "POST",
    "/broadcasts/{broadcast_id}/send",
    needs=Access.SENDING,
    token_scope=TokenScope.SEND,
    body=wire.SendBroadcast,
    problems=(403,),
    summary="Send or schedule a broadcast",
)
async def send(request: Request, db: TeamDb) -> Reply[wire.BroadcastId]:
    wanted, broadcast_id = parse(wire.SendBroadcast, request.json()), request.uuid("broadcast_id")
    await request.use(Broadcasts).send(db, request.known, broadcast_id, wanted.scheduled_at)
    return Reply(wire.BroadcastId(id=broadcast_id))


@route(
    "POST",
    "/broadcasts/{broadcast_id}/cancel",
    needs=Access.FULL,
    problems=(403,),
    summary="Cancel a broadcast",
)
async def cancel(request: Request, db: TeamDb) -> Reply[wire.BroadcastRef]:
    broadcast_id = request.uuid("broadcast_id")
    await request.use(Broadcasts).cancel(db, broadcast_id)
    return Reply(wire.BroadcastRef(object="broadcast", id=broadcast_id))


@route(
    "POST",
    "/broadcasts/{broadcast_id}/duplicate",
    needs=Access.FULL,
    status=201,
    summary="Duplicate a broadcast",
)
async def duplicate(request: Request, db: TeamDb) -> Reply[wire.BroadcastRef]:
    duplicate_id = await request.use(Broadcasts).duplicate(db, request.uuid("broadcast_id"))
    return Reply(wire.BroadcastRef(object="broadcast", id=duplicate_id))
