"""HTTP routes of the messages of a thread (inboxes.md 6.1 and 6.4)."""

from __future__ import annotations

from uuid import UUID

from pillarbox.inboxes import paths
from pillarbox.inboxes.messages import lists, queries, wire
from pillarbox.inboxes.messages.queries import StoredMessage
from pillarbox.inboxes.messages.reading import MessageReading
from pillarbox.inboxes.messages.safe_texts import SafeTexts
from pillarbox.inboxes.received_mail import EmailVerdicts, MessageFile
from pillarbox.kernel.http.files import FileLinks
from pillarbox.kernel.http.request import Reply, Request
from pillarbox.kernel.http.routing import Access, InboxRight, route
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.wire.paging import PAGING, ListOf, Page
from pillarbox.kernel.wire.problems import NotFound

EMAILS = "/inboxes/{inbox}/threads/{thread_id}/emails"
EMAIL = "/inboxes/{inbox}/threads/{thread_id}/emails/{email_id}"
VERDICTS = "/inboxes/{inbox}/threads/{thread_id}/emails/{email_id}/verdicts"
SAFE_TEXT = "/inboxes/{inbox}/threads/{thread_id}/emails/{email_id}/safe-text"
ATTACHMENTS = "/inboxes/{inbox}/threads/{thread_id}/emails/{email_id}/attachments"
ATTACHMENT = "/inboxes/{inbox}/threads/{thread_id}/emails/{email_id}/attachments/{attachment_id}"


@route(
    "GET",
    EMAILS,
    needs=Access.FULL,
    inbox_rights=(InboxRight.READ,),
    query=PAGING,
    summary="List the emails of a thread",
)
async def index(request: Request, db: TeamDb) -> Reply[ListOf[wire.Message]]:
    page = Page.read(request.query)
    inbox_id = await paths.inbox_of(request, db)
    messages = await lists.message_page(db, inbox_id, request.uuid("thread_id"), page)
    reading = await _opened(request, db, messages.rows)
    return Reply(await reading.listed(db, messages, request.is_client_gone))


@route(
    "GET", EMAIL, needs=Access.FULL, inbox_rights=(InboxRight.READ,), summary="Retrieve an email of a thread"
)
async def show(request: Request, db: TeamDb) -> Reply[wire.Message]:
    reading, row = await _read(request, db)
    return Reply(await reading.one(db, row, request.is_client_gone))


@route(
    "GET",
    ATTACHMENTS,
    needs=Access.FULL,
    inbox_rights=(InboxRight.READ,),
    summary="List the attachments of an email of a thread",
)
async def attachments(request: Request, db: TeamDb) -> Reply[ListOf[wire.InboxesMessagesAttachmentItem]]:
    reading, row = await _read(request, db)
    files = await reading.files(db, row)
    return Reply(
        ListOf(
            has_more=False,
            data=[_linked(wire.InboxesMessagesAttachmentItem, request, db.team_id, file) for file in files],
        )
    )


@route(
    "GET",
    ATTACHMENT,
    needs=Access.FULL,
    inbox_rights=(InboxRight.READ,),
    summary="Retrieve an attachment of an email of a thread",
)
async def attachment(request: Request, db: TeamDb) -> Reply[wire.InboxesMessagesAttachment]:
    wanted = request.uuid("attachment_id")
    reading, row = await _read(request, db)
    for file in await reading.files(db, row):
        if file.id == wanted:
            return Reply(_linked(wire.InboxesMessagesAttachment, request, db.team_id, file))
    raise NotFound("Attachment")


@route(
    "GET",
    VERDICTS,
    needs=Access.FULL,
    inbox_rights=(InboxRight.READ,),
    summary="Retrieve what was found out about an email of a thread",
)
async def verdicts(request: Request, db: TeamDb) -> Reply[EmailVerdicts]:
    _, row = await message_of(request, db)
    found = await request.use(MessageReading).verdicts(db, row)
    if found is None:
        raise NotFound("Verdict")
    return Reply(found)


@route(
    "GET",
    SAFE_TEXT,
    needs=Access.FULL,
    inbox_rights=(InboxRight.READ,),
    summary="Retrieve the safe text of an email of a thread",
)
async def safe_text(request: Request, db: TeamDb) -> Reply[wire.SafeText]:
    _, row = await _read(request, db)
    return Reply(await request.use(SafeTexts).of(db, row, request.is_client_gone))


async def message_of(request: Request, db: TeamDb) -> tuple[UUID, StoredMessage]:
    """Return the message that the path names, with its inbox."""
    inbox_id = await paths.inbox_of(request, db)
    thread_id, email_id = request.uuid("thread_id"), request.uuid("email_id")
    found = await queries.get(db, inbox_id, thread_id, email_id)
    if found is None:
        raise NotFound("Email" if await queries.has_thread(db, inbox_id, thread_id) else "Thread")
    return inbox_id, found


async def _read(request: Request, db: TeamDb) -> tuple[MessageReading, StoredMessage]:
    """Return the message that the path names, and the reader of its content; 403 where that is kept from the
    team."""
    _, row = await message_of(request, db)
    return await _opened(request, db, [row]), row


async def _opened(request: Request, db: TeamDb, rows: list[StoredMessage]) -> MessageReading:
    """Return the reader of messages; 403 where the content of one of these is kept from the team."""
    reading = request.use(MessageReading)
    if request.known.is_metered:
        await reading.refuse_above(db, rows)
    return reading


def _linked(kind: type[wire.A], request: Request, team_id: UUID, file: MessageFile) -> wire.A:
    url, ends = request.use(FileLinks).link(file.kind, team_id, file.id)
    return wire.attachment(kind, file, url, ends)
