"""HTTP routes of inboxes (inboxes.md section 3). `inbox` is the id or the address."""

from __future__ import annotations

from functools import partial

from pillarbox.inboxes.inbox import queries, wire
from pillarbox.inboxes.inbox.changes import Inboxes
from pillarbox.inboxes.paths import inbox_of
from pillarbox.kernel.http.request import Reply, Request
from pillarbox.kernel.http.routing import Access, route
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.wire.fields import parse
from pillarbox.kernel.wire.paging import PAGING, ListOf, Page, listed
from pillarbox.kernel.wire.problems import NotFound


@route(
    "POST",
    "/inboxes",
    needs=Access.FULL,
    status=201,
    body=wire.NewInbox,
    problems=(403, 409),
    summary="Create an inbox",
)
async def create(request: Request, db: TeamDb) -> Reply[wire.InboxRef]:
    wanted = parse(wire.NewInbox, request.json())
    return Reply(wire.ref(await request.use(Inboxes).create(db, wanted)))


@route("GET", "/inboxes", needs=Access.FULL, inbox_rights=(), query=PAGING, summary="List inboxes")
async def index(request: Request, db: TeamDb) -> Reply[ListOf[wire.InboxItem]]:
    rows = partial(queries.page, db, only=request.known.inbox_id)
    return Reply(await listed(rows, Page.read(request.query), wire.item))


@route("GET", "/inboxes/{inbox}", needs=Access.FULL, inbox_rights=(), summary="Retrieve an inbox")
async def show(request: Request, db: TeamDb) -> Reply[wire.FullInbox]:
    inbox = await queries.get(db, await inbox_of(request, db))
    if inbox is None:
        raise NotFound("Inbox")
    return Reply(wire.full(inbox))


@route("PATCH", "/inboxes/{inbox}", needs=Access.FULL, body=wire.InboxChange, summary="Change an inbox")
async def update(request: Request, db: TeamDb) -> Reply[wire.InboxRef]:
    change = parse(wire.InboxChange, request.json())
    wire.refuse_nothing(change)
    inbox_id = await inbox_of(request, db)
    await request.use(Inboxes).change(db, inbox_id, change)
    return Reply(wire.ref(inbox_id))


@route("DELETE", "/inboxes/{inbox}", needs=Access.FULL, summary="Delete an inbox")
async def remove(request: Request, db: TeamDb) -> Reply[wire.InboxDeleted]:
    inbox_id = await inbox_of(request, db)
    await request.use(Inboxes).delete(db, inbox_id)
    return Reply(wire.InboxDeleted(object="inbox", id=inbox_id, deleted=True))
