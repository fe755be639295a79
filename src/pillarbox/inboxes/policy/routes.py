"""HTTP routes of the policy of an inbox (inboxes.md 3.7)."""

from __future__ import annotations

from functools import partial

from pillarbox.domains.senders import Senders
from pillarbox.inboxes.locking import lock
from pillarbox.inboxes.paths import inbox_of
from pillarbox.inboxes.policy import queries, wire
from pillarbox.inboxes.policy.rules import InboxPolicy
from pillarbox.kernel.http.request import Reply, Request
from pillarbox.kernel.http.routing import Access, InboxRight, route
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.postgres.database import TeamDb, after_commit
from pillarbox.kernel.wire.problems import NotFound


@route(
    "GET",
    "/inboxes/{inbox}/policy",
    needs=Access.FULL,
    inbox_rights=(InboxRight.READ,),
    summary="Retrieve the policy of an inbox",
)
async def show(request: Request, db: TeamDb) -> Reply[wire.FullPolicy]:
    return Reply(wire.shape(await queries.get(db, await inbox_of(request, db)) or InboxPolicy()))


@route(
    "PUT",
    "/inboxes/{inbox}/policy",
    needs=Access.FULL,
    body=wire.NewPolicy,
    parses_first=True,
    summary="Replace the policy of an inbox",
)
async def replace(request: Request, db: TeamDb) -> Reply[wire.FullPolicy]:
    wanted: wire.NewPolicy = request.wanted
    inbox_id = await inbox_of(request, db)
    if not await lock(db.connection, [(db.team_id, inbox_id)]):
        raise NotFound("Inbox")
    policy = wanted.policy(request.use(Ids).now())
    await queries.put(db, inbox_id, policy)
    after_commit(db.connection, partial(request.use(Senders).forget, db.team_id))
    return Reply(wire.shape(policy))
