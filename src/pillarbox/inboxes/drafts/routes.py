"""HTTP routes of drafts (inboxes.md section 7)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from pillarbox.emails.requests import parse
from pillarbox.inboxes import paths
from pillarbox.inboxes.drafts import lists, queries, wire
from pillarbox.inboxes.drafts.changes import CreatedDraft, Drafts, found
from pillarbox.inboxes.drafts.files import KIND
from pillarbox.inboxes.drafts.send import DraftSending
from pillarbox.inboxes.sending.routes import LARGEST, call_of
from pillarbox.kernel.clock import Clock
from pillarbox.kernel.http.files import FileLinks
from pillarbox.kernel.http.request import Reply, Request
from pillarbox.kernel.http.request_recording import kept, recorded
from pillarbox.kernel.http.routing import Access, InboxRight, route
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.process.offload import in_thread_if_large
from pillarbox.kernel.wire import fields
from pillarbox.kernel.wire.paging import PAGING, ListOf, Page
from pillarbox.kernel.wire.problems import NotFound

DRAFTS: Final = "/inboxes/{inbox}/drafts"
DRAFT: Final = "/inboxes/{inbox}/drafts/{draft_id}"


@route(
    "GET",
    DRAFTS,
    needs=Access.FULL,
    inbox_rights=(InboxRight.DRAFT,),
    query=PAGING,
    summary="List the unsent drafts of an inbox",
)
async def index(request: Request, db: TeamDb) -> Reply[ListOf[wire.DraftItem]]:
    page = Page.read(request.query)
    rows, more = await lists.draft_page(db, await paths.inbox_of(request, db), page)
    octets = sum([len(row.html or "") for row in rows])
    return Reply(ListOf(has_more=more, data=await in_thread_if_large(octets, _listed, rows)))


@route(
    "POST",
    DRAFTS,
    needs=Access.FULL,
    inbox_rights=(InboxRight.DRAFT,),
    status=201,
    also=(200,),
    limit=LARGEST,
    idempotent=True,
    named=paths.BY_ADDRESS,
    transaction=False,
    body=wire.NewDraft,
    problems=(404,),
    summary="Create a draft",
)
async def create(request: Request, db: TeamDb) -> Reply[wire.DraftRef]:
    body = request.json()
    wanted = await in_thread_if_large(_octets(request, body), fields.parse, wire.NewDraft, body)
    reply_to = wanted.reply_to()
    inbox_id = await paths.inbox_of(request, db)
    answers: list[Reply[wire.DraftRef]] = []

    async def finish(held: TeamDb, created_draft: CreatedDraft) -> None:
        answer = Reply(
            wire.DraftRef(object="inbox_draft", id=created_draft.id), 201 if created_draft.is_new else 200
        )
        answers.append(await kept(request, held, answer, request.use(Clock).now()))  # type: ignore[type-abstract]

    drafts = request.use(Drafts)
    await drafts.create(db, inbox_id, wanted, reply_to, finish=finish, is_gone=request.is_client_gone)
    return answers[-1]


@route("GET", DRAFT, needs=Access.FULL, inbox_rights=(InboxRight.DRAFT,), summary="Retrieve a draft")
async def show(request: Request, db: TeamDb) -> Reply[wire.Draft]:
    inbox_id = await paths.inbox_of(request, db)
    return Reply(wire.draft(await found(db, inbox_id, request.uuid("draft_id"))))


@route(
    "PATCH",
    DRAFT,
    needs=Access.FULL,
    inbox_rights=(InboxRight.DRAFT,),
    limit=LARGEST,
    transaction=False,
    body=wire.DraftChange,
    problems=(409,),
    summary="Change a draft",
)
async def update(request: Request, db: TeamDb) -> Reply[wire.DraftRef]:
    body = request.json()
    wanted = await in_thread_if_large(_octets(request, body), fields.parse, wire.DraftChange, body)
    inbox_id, draft_id = await paths.inbox_of(request, db), request.uuid("draft_id")
    answer = Reply(wire.DraftRef(object="inbox_draft", id=draft_id))

    async def finish(held: TeamDb) -> None:
        await recorded(request, held, answer)

    drafts = request.use(Drafts)
    await drafts.change(db, inbox_id, draft_id, wanted, finish=finish, is_gone=request.is_client_gone)
    return answer


@route(
    "DELETE",
    DRAFT,
    needs=Access.FULL,
    inbox_rights=(InboxRight.DRAFT,),
    transaction=False,
    problems=(409,),
    summary="Delete a draft",
)
async def remove(request: Request, db: TeamDb) -> Reply[wire.DraftDeleted]:
    inbox_id, draft_id = await paths.inbox_of(request, db), request.uuid("draft_id")
    answer = Reply(wire.DraftDeleted(object="inbox_draft", id=draft_id, deleted=True))

    async def finish(held: TeamDb) -> None:
        await recorded(request, held, answer)

    await request.use(Drafts).delete(db, inbox_id, draft_id, finish=finish)
    return answer


@route(
    "POST",
    f"{DRAFT}/send",
    needs=Access.FULL,
    inbox_rights=(InboxRight.SEND,),
    idempotent=True,
    named=paths.BY_ADDRESS,
    transaction=False,
    body=wire.SendDraft,
    problems=(404, 409),
    summary="Send a draft",
)
async def send(request: Request, db: TeamDb) -> Reply[wire.DraftSent]:
    inbox_id, draft_id = await paths.inbox_of(request, db), request.uuid("draft_id")
    # What forbids to send the draft is answered before its headers are looked at (inboxes.md 7.4).
    parse_headers = partial(fields.parse, wire.SendDraft, request.json())
    sending = request.use(DraftSending)
    return Reply(await sending.send(db, call_of(request), inbox_id, draft_id, parse_headers))


@route(
    "GET",
    f"{DRAFT}/attachments/{{attachment_id}}",
    needs=Access.FULL,
    inbox_rights=(InboxRight.DRAFT,),
    summary="Retrieve an attachment of a draft",
)
async def show_attachment(request: Request, db: TeamDb) -> Reply[wire.LinkedFile]:
    inbox_id, draft_id = await paths.inbox_of(request, db), request.uuid("draft_id")
    file = await queries.file(db, inbox_id, draft_id, request.uuid("attachment_id"))
    if file is None:
        await found(db, inbox_id, draft_id)
        raise NotFound("Attachment")
    return Reply(wire.linked(file, *request.use(FileLinks).link(KIND, db.team_id, file.id)))


def _octets(request: Request, body: Mapping[str, Any]) -> int:
    return parse.octets_to_read(request.size, [body])


def _listed(rows: list[queries.ListedDraft]) -> list[wire.DraftItem]:
    return [wire.listed(row) for row in rows]
