"""HTTP routes of agent settings (inboxes.md 3.6)."""

from __future__ import annotations

from pillarbox.inboxes.agents import queries, wire
from pillarbox.inboxes.agents.queries import Agent
from pillarbox.inboxes.locking import lock
from pillarbox.inboxes.paths import inbox_of
from pillarbox.kernel.http.request import Reply, Request
from pillarbox.kernel.http.routing import Access, InboxRight, route
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.wire.fields import parse
from pillarbox.kernel.wire.problems import NotFound


@route(
    "GET",
    "/inboxes/{inbox}/agent",
    needs=Access.FULL,
    inbox_rights=(InboxRight.READ,),
    summary="Retrieve the agent settings of an inbox",
)
async def show(request: Request, db: TeamDb) -> Reply[wire.AgentSettings]:
    return Reply(wire.settings(await queries.get(db, await inbox_of(request, db))))


@route(
    "PATCH",
    "/inboxes/{inbox}/agent",
    needs=Access.FULL,
    body=wire.AgentChange,
    summary="Change the agent settings of an inbox",
)
async def update(request: Request, db: TeamDb) -> Reply[wire.AgentRef]:
    change, ids = parse(wire.AgentChange, request.json()), request.use(Ids)
    inbox_id = await inbox_of(request, db)
    if not await lock(db.connection, [(db.team_id, inbox_id)]):
        raise NotFound("Inbox")
    agent = wire.applied(change, await queries.get(db, inbox_id) or Agent(ids.new()))
    await queries.put(db, inbox_id, agent, ids.now())
    return Reply(wire.AgentRef(object="inbox_agent", id=agent.id))
