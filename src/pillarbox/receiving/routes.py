"""HTTP routes of received mail (receiving.md sections 2 and 4)."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import cast

from pillarbox.inboxes.received_mail import EmailVerdicts
from pillarbox.kernel.http.files import FileLinks
from pillarbox.kernel.http.request import Reply, Request
from pillarbox.kernel.http.routing import Access, route
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.wire.paging import DEFAULT, NEWEST, PAGING, ListOf, Page, ascending, envelope, listed
from pillarbox.kernel.wire.problems import Invalid, NotFound
from pillarbox.receiving import files, queries, wire
from pillarbox.receiving.list_filters import FILTERS, ReceivedFilter, filter_of, find
from pillarbox.receiving.queries import AttachmentPart, ReceivedEmailRow
from pillarbox.receiving.reading import CID, DATA_URI, HtmlFormat, MessageReader
from pillarbox.usage import counting


@route(
    "GET",
    "/emails/receiving",
    needs=Access.FULL,
    query={**PAGING, **FILTERS, "message_id": str},
    summary="List received emails",
)
async def index(request: Request, db: TeamDb) -> Reply[wire.ReceivingList]:
    page = Page.read(request.query, default=None)
    conditions = filter_of(request.query)
    if conditions is not None:
        return Reply(await _filtered(db, conditions, page))
    if message_id := request.query.text("message_id"):
        return Reply(_unfiltered(await _with_message_id(db, message_id, page)))
    found = await listed(partial(queries.page, db), page, wire.listed)
    return Reply(_unfiltered(found) if isinstance(found, ListOf) else found)


def _unfiltered(page: ListOf[wire.ReceivingListItem]) -> wire.ReceivingList:
    return wire.ReceivingList(has_more=page.has_more, data=page.data)


async def _filtered(db: TeamDb, conditions: ReceivedFilter, page: Page) -> wire.ReceivingList:
    """Return a page of the emails that fit. It may have fewer than asked for and still have a next one."""
    found = await find(db, conditions, page)
    answer = wire.ReceivingList(
        has_more=found.following is not None, data=[wire.listed(email) for email in found.emails]
    )
    if found.following is not None:
        answer.next = found.following
    return answer


async def _with_message_id(db: TeamDb, message_id: str, page: Page) -> ListOf[wire.ReceivingListItem]:
    """Return the emails with a Message-ID, which is given with or without its angle brackets."""
    if page.before:
        raise Invalid("`message_id` cannot be used with `before`. Use `after`.")
    page = replace(page, limit=page.limit or DEFAULT)
    bare = message_id.strip().removeprefix("<").removesuffix(">")
    rows = await queries.with_message_id(db, f"<{bare}>", page.after or NEWEST, (page.limit or DEFAULT) + 1)
    return envelope(rows, page, wire.listed)


@route(
    "GET",
    "/emails/receiving/{email_id}",
    needs=Access.FULL,
    query={"html_format": HtmlFormat},
    summary="Retrieve a received email",
)
async def show(request: Request, db: TeamDb) -> Reply[wire.ReceivingEmail]:
    wanted = cast(HtmlFormat, request.query.choice("html_format", DATA_URI, CID) or DATA_URI)
    found = await _opened(request, db)
    async with request.use(MessageReader).turn(db.team_id, found.size, request.is_client_gone):
        reply = Reply(await _shown(request, db, found, wanted))
        await reply.encode()
    return reply


@route(
    "GET",
    "/emails/receiving/{email_id}/attachments",
    needs=Access.FULL,
    query=PAGING,
    summary="List the attachments of a received email",
)
async def list_attachments(request: Request, db: TeamDb) -> Reply[ListOf[wire.ReceivingAttachmentItem]]:
    page = Page.read(request.query, default=None)
    found = await _opened(request, db)
    kept, more = ascending(await queries.parts(db, found.id), page)
    items = [_linked(wire.ReceivingAttachmentItem, request, db, part) for part in kept]
    return Reply(ListOf(has_more=more, data=items))


@route(
    "GET",
    "/emails/receiving/{email_id}/attachments/{attachment_id}",
    needs=Access.FULL,
    summary="Retrieve an attachment of a received email",
)
async def show_attachment(request: Request, db: TeamDb) -> Reply[wire.ReceivingAttachment]:
    wanted = request.uuid("attachment_id")
    found = await _opened(request, db)
    part = await queries.part(db, wanted)
    if part is None or part.email_id != found.id:
        raise NotFound("Attachment")
    return Reply(_linked(wire.ReceivingAttachment, request, db, part))


@route(
    "GET",
    "/emails/receiving/{email_id}/verdicts",
    needs=Access.FULL,
    summary="Retrieve what was found out about a received email",
)
async def show_verdicts(request: Request, db: TeamDb) -> Reply[EmailVerdicts]:
    found = await queries.verdicts(db, request.uuid("email_id"))
    if found is None:
        raise NotFound("Email")
    return Reply(wire.verdicts(found))


async def _shown(
    request: Request, db: TeamDb, row: ReceivedEmailRow, html_format: HtmlFormat
) -> wire.ReceivingEmail:
    source = await queries.source(db, row.id)
    parts = await queries.parts(db, row.id) if row.attachments else []
    reading = request.use(MessageReader)
    parsed = await reading.parsed(source)
    html = parsed.html
    if html is not None and source is not None:
        html, html_format = await reading.shown_html(html, source, parts, html_format)
    link = None if source is None else request.use(FileLinks).link(files.RAW, db.team_id, row.id)
    return wire.email(row, parsed, html, html_format, link, parts)


async def _opened(request: Request, db: TeamDb) -> ReceivedEmailRow:
    """Return the email that the path names, for a caller who may see its content."""
    found = await queries.get(db, request.uuid("email_id"))
    if found is None:
        raise NotFound("Email")
    if request.known.is_metered:
        await counting.refuse_above(db, found.id)
    return found


def _linked(kind: type[wire.A], request: Request, db: TeamDb, part: AttachmentPart) -> wire.A:
    url, ends = request.use(FileLinks).link(files.ATTACHMENT, db.team_id, part.id)
    return wire.attachment(kind, part, url, ends)
