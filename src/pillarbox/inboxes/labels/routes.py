"""HTTP routes of the labels of an inbox (inboxes.md section 4)."""

from __future__ import annotations

from pillarbox.inboxes.labels import queries, wire
from pillarbox.inboxes.labels.changes import Labels
from pillarbox.inboxes.paths import inbox_of
from pillarbox.kernel.http.request import Reply, Request
from pillarbox.kernel.http.routing import Access, InboxRight, route
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.wire.fields import parse
from pillarbox.kernel.wire.paging import ListOf


@route(
    "GET",
    "/inboxes/{inbox}/labels",
    needs=Access.FULL,
    inbox_rights=(),
    summary="List the labels of an inbox",
)
async def index(request: Request, db: TeamDb) -> Reply[ListOf[wire.LabelItem]]:
    labels = await queries.of_inbox(db, await inbox_of(request, db))
    return Reply(ListOf(has_more=False, data=[wire.item(label) for label in labels]))


@route(
    "POST",
    "/inboxes/{inbox}/labels",
    needs=Access.FULL,
    inbox_rights=(InboxRight.LABEL,),
    status=201,
    body=wire.NewLabel,
    summary="Create a label",
)
async def create(request: Request, db: TeamDb) -> Reply[wire.LabelRef]:
    wanted = parse(wire.NewLabel, request.json())
    inbox_id = await inbox_of(request, db)
    return Reply(wire.ref(await request.use(Labels).create(db, inbox_id, wanted)))


@route(
    "PATCH",
    "/inboxes/{inbox}/labels/{label_id}",
    needs=Access.FULL,
    inbox_rights=(InboxRight.LABEL,),
    body=wire.LabelChange,
    summary="Change a label",
)
async def update(request: Request, db: TeamDb) -> Reply[wire.LabelRef]:
    change = parse(wire.LabelChange, request.json())
    wire.refuse_nothing(change)
    inbox_id, label_id = await inbox_of(request, db), request.uuid("label_id")
    await request.use(Labels).change(db, inbox_id, label_id, change)
    return Reply(wire.ref(label_id))


@route(
    "DELETE",
    "/inboxes/{inbox}/labels/{label_id}",
    needs=Access.FULL,
    inbox_rights=(InboxRight.LABEL,),
    summary="Delete a label",
)
async def remove(request: Request, db: TeamDb) -> Reply[wire.LabelDeleted]:
    inbox_id, label_id = await inbox_of(request, db), request.uuid("label_id")
    await request.use(Labels).delete(db, inbox_id, label_id)
    return Reply(wire.LabelDeleted(object="inbox_label", id=label_id, deleted=True))
