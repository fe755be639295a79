"""HTTP routes of plans, extensions of ours (broadcasts.md section 11)."""

from __future__ import annotations

from pillarbox.broadcasts.plans import progress, queries, wire
from pillarbox.broadcasts.store import Broadcasts, found
from pillarbox.broadcasts.wire import BroadcastRef
from pillarbox.kernel.http.request import Reply, Request
from pillarbox.kernel.http.routing import Access, route
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.wire.fields import parse

MOST_BODY = 40 * 1024 * 1024
PAUSED = "Paused over the API."


@route(
    "GET", "/broadcasts/{broadcast_id}/plan", needs=Access.FULL, summary="Retrieve the plan of a broadcast"
)
async def show(request: Request, db: TeamDb) -> Reply[wire.ShownPlan]:
    broadcast_id = request.uuid("broadcast_id")
    await found(db, broadcast_id)
    return Reply(wire.shown_plan(broadcast_id, await queries.get(db, broadcast_id)))


@route(
    "PUT",
    "/broadcasts/{broadcast_id}/plan",
    needs=Access.FULL,
    body=wire.PutPlan,
    parses_first=True,
    limit=MOST_BODY,
    problems=(403, 409),
    summary="Set the plan of a broadcast",
)
async def update(request: Request, db: TeamDb) -> Reply[wire.ShownPlan]:
    wanted: wire.PutPlan = request.wanted
    plan, broadcast_id = wanted.broadcast_plan(), request.uuid("broadcast_id")
    await request.use(Broadcasts).plan(db, broadcast_id, plan, wanted.revision)
    return Reply(wire.shown_plan(broadcast_id, plan))


@route(
    "POST",
    "/broadcasts/{broadcast_id}/pause",
    needs=Access.FULL,
    body=wire.PauseBroadcast,
    problems=(403,),
    summary="Pause a broadcast",
)
async def pause(request: Request, db: TeamDb) -> Reply[BroadcastRef]:
    wanted, broadcast_id = parse(wire.PauseBroadcast, request.json()), request.uuid("broadcast_id")
    await request.use(Broadcasts).pause(db, broadcast_id, wanted.reason or PAUSED)
    return Reply(BroadcastRef(object="broadcast", id=broadcast_id))


@route(
    "POST",
    "/broadcasts/{broadcast_id}/resume",
    needs=Access.FULL,
    problems=(403,),
    summary="Resume a broadcast",
)
async def resume(request: Request, db: TeamDb) -> Reply[BroadcastRef]:
    broadcast_id = request.uuid("broadcast_id")
    await request.use(Broadcasts).resume(db, broadcast_id)
    return Reply(BroadcastRef(object="broadcast", id=broadcast_id))


@route(
    "POST",
    "/broadcasts/{broadcast_id}/winner",
    needs=Access.FULL,
    body=wire.ChosenVariant,
    problems=(403,),
    summary="Choose the winner of an A/B test",
)
async def choose(request: Request, db: TeamDb) -> Reply[BroadcastRef]:
    wanted, broadcast_id = parse(wire.ChosenVariant, request.json()), request.uuid("broadcast_id")
    await request.use(Broadcasts).choose_winner(db, broadcast_id, wanted.variant)
    return Reply(BroadcastRef(object="broadcast", id=broadcast_id))


@route(
    "GET",
    "/broadcasts/{broadcast_id}/progress",
    needs=Access.FULL,
    summary="Retrieve how far a broadcast is",
)
async def report(request: Request, db: TeamDb) -> Reply[wire.BroadcastProgress]:
    return Reply(await progress.progress_of(db, request.uuid("broadcast_id")))


@route(
    "GET",
    "/broadcasts/{broadcast_id}/audience",
    needs=Access.FULL,
    summary="Count who would get a broadcast",
)
async def count(request: Request, db: TeamDb) -> Reply[wire.BroadcastAudience]:
    return Reply(await progress.audience_of(db, request.uuid("broadcast_id"), request.at))
