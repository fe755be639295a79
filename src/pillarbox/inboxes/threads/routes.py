"""HTTP routes of threads, their labels and whom they are assigned to (inboxes.md section 5)."""

from __future__ import annotations

from functools import partial
from uuid import UUID

from msgspec import UNSET

from pillarbox.inboxes import paths
from pillarbox.inboxes.folders import ThreadFolder
from pillarbox.inboxes.search import pages
from pillarbox.inboxes.threads import lists, wire
from pillarbox.inboxes.threads.changes import Threads, found
from pillarbox.inboxes.threads.list_filter import FILTERS, ThreadFilter
from pillarbox.inboxes.waiting.thread_lists import WAITING_FOR, WaitOptions, awaited
from pillarbox.kernel.http.request import Reply, Request
from pillarbox.kernel.http.routing import Access, InboxRight, route
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.wire.fields import parse
from pillarbox.kernel.wire.paging import PAGING, Page
from pillarbox.kernel.wire.problems import Invalid

THREADS = "/inboxes/{inbox}/threads"
THREAD = "/inboxes/{inbox}/threads/{thread_id}"
LABELS = "/inboxes/{inbox}/threads/{thread_id}/labels"
ASSIGNEE = "/inboxes/{inbox}/threads/{thread_id}/assignee"


@route(
    "GET",
    THREADS,
    needs=Access.FULL,
    inbox_rights=(InboxRight.READ,),
    query={**FILTERS, **PAGING, **WAITING_FOR},
    summary="List threads",
)
async def index(request: Request, db: TeamDb) -> Reply[wire.ThreadList]:
    page, wanted, wait = (
        Page.read(request.query),
        ThreadFilter.of(request.query),
        WaitOptions.read(request.query),
    )

    async def read(inbox_id: UUID) -> wire.ThreadList:
        if wanted.text is None:
            shown = await lists.thread_page(db, inbox_id, page, wanted)
        else:
            shown = await pages.by_text(db, inbox_id, page, wanted, wanted.text)
        return wire.ThreadList(has_more=shown.has_more, data=[wire.item(row) for row in shown.threads])

    find = partial(paths.inbox_of, request, db)
    return Reply(await awaited(request, wait, (page, wanted), find, read))


@route("GET", THREAD, needs=Access.FULL, inbox_rights=(InboxRight.READ,), summary="Retrieve a thread")
async def show(request: Request, db: TeamDb) -> Reply[wire.Thread]:
    return Reply(wire.thread(await found(db, *await _thread(request, db))))


@route(
    "PATCH",
    THREAD,
    needs=Access.FULL,
    inbox_rights=(InboxRight.LABEL,),
    body=wire.ThreadChange,
    summary="Mark, move or label a thread",
)
async def update(request: Request, db: TeamDb) -> Reply[wire.Thread]:
    wanted = parse(wire.ThreadChange, request.json())
    if wanted == wire.ThreadChange():
        raise Invalid("Use at least one of `read`, `folder` and `label_id`.")
    thread = await request.use(Threads).update(
        db,
        *await _thread(request, db),
        is_read=None if wanted.read is UNSET else wanted.read,
        folder=None if wanted.folder is UNSET else ThreadFolder(wanted.folder),
        label_id=None if wanted.label_id is UNSET else wanted.label_id,
    )
    return Reply(wire.thread(thread))


@route(
    "DELETE",
    THREAD,
    needs=Access.FULL,
    inbox_rights=(InboxRight.LABEL,),
    summary="Move a thread to the trash",
)
async def remove(request: Request, db: TeamDb) -> Reply[wire.ThreadDeleted]:
    inbox_id, thread_id = await _thread(request, db)
    deleted = await request.use(Threads).trash(db, inbox_id, thread_id)
    return Reply(wire.ThreadDeleted(object="inbox_thread", id=thread_id, deleted=deleted))


@route(
    "POST",
    LABELS,
    needs=Access.FULL,
    inbox_rights=(InboxRight.LABEL,),
    body=wire.AddedLabels,
    summary="Add labels to a thread",
)
async def add_labels(request: Request, db: TeamDb) -> Reply[wire.ThreadLabels]:
    wanted = parse(wire.AddedLabels, request.json())
    thread = await request.use(Threads).add_labels(db, *await _thread(request, db), wanted.labels)
    return Reply(wire.all_labels(thread))


@route(
    "PUT",
    LABELS,
    needs=Access.FULL,
    inbox_rights=(InboxRight.LABEL,),
    body=wire.SetLabels,
    summary="Set the labels of a thread",
)
async def set_labels(request: Request, db: TeamDb) -> Reply[wire.ThreadLabels]:
    wanted = parse(wire.SetLabels, request.json())
    thread = await request.use(Threads).set_labels(db, *await _thread(request, db), wanted.labels)
    return Reply(wire.all_labels(thread))


@route(
    "DELETE",
    "/inboxes/{inbox}/threads/{thread_id}/labels/{label_id}",
    needs=Access.FULL,
    inbox_rights=(InboxRight.LABEL,),
    summary="Take a label off a thread",
)
async def remove_label(request: Request, db: TeamDb) -> Reply[wire.ThreadLabels]:
    thread = await request.use(Threads).remove_label(
        db, *await _thread(request, db), request.uuid("label_id")
    )
    return Reply(wire.all_labels(thread))


@route("PUT", ASSIGNEE, needs=Access.FULL, body=wire.Assigned, summary="Assign a thread to a member")
async def assign(request: Request, db: TeamDb) -> Reply[wire.ThreadAssignee]:
    wanted = parse(wire.Assigned, request.json())
    inbox_id, thread_id = await _thread(request, db)
    assignee = await request.use(Threads).assign(db, inbox_id, thread_id, wanted.email)
    return Reply(wire.ThreadAssignee(object="inbox_thread", id=thread_id, assignee_email=assignee))


@route("DELETE", ASSIGNEE, needs=Access.FULL, summary="Assign a thread to nobody")
async def unassign(request: Request, db: TeamDb) -> Reply[wire.ThreadAssignee]:
    inbox_id, thread_id = await _thread(request, db)
    await request.use(Threads).assign(db, inbox_id, thread_id, None)
    return Reply(wire.ThreadAssignee(object="inbox_thread", id=thread_id, assignee_email=None))


async def _thread(request: Request, db: TeamDb) -> tuple[UUID, UUID]:
    """Return the inbox and the thread that the path names; whether the inbox has the thread is not known
    yet."""
    return await paths.inbox_of(request, db), request.uuid("thread_id")
