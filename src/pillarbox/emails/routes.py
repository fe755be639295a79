"""The HTTP routes of emails (emails.md sections 2 to 5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec

from pillarbox.delivery.queue import email_work
from pillarbox.domains.senders import Senders
from pillarbox.emails import queries, wire
from pillarbox.emails.accept import Accept, AuthorizedEmail
from pillarbox.emails.inbox_mail.draft_emails import DraftEmails
from pillarbox.emails.insights.reading import insights_of
from pillarbox.emails.outgoing import OutgoingEmail
from pillarbox.emails.raw_mail.messages import RAW, SentMessages
from pillarbox.emails.requests import parse
from pillarbox.emails.requests.templating import TemplateRendering
from pillarbox.emails.search.filters import EmailFilter
from pillarbox.emails.search.find import find
from pillarbox.emails.search.list_parameters import FILTERS, filter_of
from pillarbox.emails.sharing import share
from pillarbox.emails.sharing.shared_page import SharedMailSource
from pillarbox.emails.wire import MOST_IN_BATCH, PERMISSIVE, STRICT
from pillarbox.kernel.clock import Clock
from pillarbox.kernel.http.files import FileLinks
from pillarbox.kernel.http.request import Reply, Request
from pillarbox.kernel.http.routing import Access, TokenScope, route
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.process.offload import in_thread_if_large
from pillarbox.kernel.wire import fields
from pillarbox.kernel.wire.instants import iso_style
from pillarbox.kernel.wire.paging import DEFAULT, PAGING, ListOf, Page, ascending, envelope
from pillarbox.kernel.wire.problems import Invalid, InvalidField, NotFound, Problem, at_index
from pillarbox.templates.published import PublishedTemplate
from pillarbox.timeline import history
from pillarbox.timeline.record import Timeline
from pillarbox.usage import counting

MIB = 1024 * 1024
MOST_EVENTS = 1000

_encode = msgspec.json.Encoder().encode


class OnlyScheduled(Invalid):
    def __init__(self, what: str) -> None:
        super().__init__(f"Only scheduled emails can be {what}.")


@route(
    "POST",
    "/emails",
    needs=Access.SENDING,
    token_scope=TokenScope.SEND,
    aliases=("/email", "/emails/sending", "/email/sending"),
    limit=50 * MIB,
    idempotent=True,
    transaction=False,
    body=wire.SendEmail,
    problems=(404,),
    summary="Send an email",
)
async def send(request: Request, db: TeamDb) -> Reply[wire.EmailId]:
    accept = request.use(Accept)
    body = request.json()
    size = parse.octets_to_read(request.size, [body])
    templates = await request.use(TemplateRendering).named(db, [body])
    outgoing = await in_thread_if_large(size, parse.outgoing, body, _now(request), templates)
    outgoing = await request.use(TemplateRendering).one(db, outgoing)
    checked = await accept.check(request.known, outgoing)
    answer = await accept.store(
        request.known,
        [checked],
        idempotency=request.idempotency,
        answer=lambda ids: b'{"id":"%s"}' % _ascii(ids[0]),
        asked=request.asked,
    )
    return Reply(answer)


def _now(request: Request) -> datetime:
    """Return the wall clock: `request.at` belongs to an id, which may be ahead of it (`kernel.ids`)."""
    return request.use(Clock).now()  # type: ignore[type-abstract]


def validation_mode(request: Request) -> str:
    """Return how a batch treats invalid items; part of the idempotent request."""
    return request.header("x-batch-validation") or STRICT


@route(
    "POST",
    "/emails/batch",
    needs=Access.SENDING,
    limit=25 * MIB,
    idempotent=True,
    salt=validation_mode,
    transaction=False,
    array=True,
    body=wire.Batch,
    headers={"x-batch-validation": wire.Validation},
    problems=(404,),
    summary="Send up to 100 emails",
)
async def send_batch(request: Request, db: TeamDb) -> Reply[wire.BatchOut]:
    mode = validation_mode(request)
    if mode not in (STRICT, PERMISSIVE):
        raise Invalid("Invalid `x-batch-validation` header. Use `strict` or `permissive`.")
    items = request.json()
    if not isinstance(items, list):
        raise Invalid("Invalid batch. Use an array of emails.")
    if not 1 <= len(items) <= MOST_IN_BATCH:
        raise Invalid(f"Invalid batch. Use an array of 1 to {MOST_IN_BATCH} emails.")
    good, bad = await _sort_out(request, db, items, strict=mode == STRICT)
    errors = None if mode == STRICT else bad
    body = await request.use(Accept).store(
        request.known,
        good,
        idempotency=request.idempotency,
        answer=lambda ids: _batch_body(ids, errors),
        asked=request.asked,
    )
    return Reply(body)


async def _sort_out(
    request: Request, db: TeamDb, items: Sequence[Any], *, strict: bool
) -> tuple[list[AuthorizedEmail], list[wire.BatchError]]:
    """Return the valid items, and why the others are not; strict raises for the first of them."""
    accept, templating = request.use(Accept), request.use(TemplateRendering)
    good: list[AuthorizedEmail] = []
    bad: list[wire.BatchError] = []
    size = parse.octets_to_read(request.size, items)
    templates = await templating.named(db, items)
    parsed = await in_thread_if_large(size, _parsed, items, _now(request), templates)
    parsed = await templating.rendered(db, parsed)
    named = {
        item.topic_id for item in parsed if isinstance(item, OutgoingEmail) and item.topic_id is not None
    }
    topics = await accept.topics(request.known, named)
    for index, item in enumerate(parsed):
        try:
            if isinstance(item, Problem):
                raise item
            good.append(await accept.check(request.known, item, topics))
        except Problem as problem:
            if strict:
                raise at_index(index, problem) from None
            bad.append(wire.BatchError(index=index, message=problem.message))
    return good, bad


def _parsed(
    items: Sequence[Any], instant: datetime, templates: Mapping[str, PublishedTemplate]
) -> Sequence[OutgoingEmail | Problem]:
    """Return each item as an email, or what is wrong with it."""
    found: list[OutgoingEmail | Problem] = []
    for item in items:
        try:
            if isinstance(item, dict) and item.get("attachments"):
                raise InvalidField("attachments", "Attachments are not supported in a batch.")
            found.append(parse.outgoing(item, instant, templates))
        except Problem as problem:
            found.append(problem)
    return found


def _batch_body(ids: Sequence[UUID], errors: list[wire.BatchError] | None) -> bytes:
    shape = wire.BatchOut(data=[wire.EmailId(id=found) for found in ids])
    if errors is not None:
        shape.errors = errors
    return _encode(shape)


def _ascii(email_id: UUID) -> bytes:
    return str(email_id).encode("ascii")


@route(
    "GET",
    "/emails",
    needs=Access.FULL,
    query={**PAGING, **FILTERS},
    transaction=False,
    summary="List sent emails",
)
async def index(request: Request, db: TeamDb) -> Reply[wire.EmailList]:
    page = Page.read(request.query)
    email_filter = filter_of(request.query)
    if email_filter is not None:
        return Reply(await _filtered(db, email_filter, page))
    listed = envelope(await queries.page(db, page), page, wire.listed)
    return Reply(wire.EmailList(has_more=listed.has_more, data=listed.data))


async def _filtered(db: TeamDb, email_filter: EmailFilter, page: Page) -> wire.EmailList:
    """Return a page of the emails that fit. It may have fewer than asked for and still have a next one."""
    found = await find(db.source, db.team_id, email_filter, limit=page.limit or DEFAULT, after=page.after)
    answer = wire.EmailList(
        has_more=found.following is not None, data=[wire.listed(email) for email in found.emails]
    )
    if found.following is not None:
        answer.next = found.following
    return answer


@route("GET", "/emails/{email_id}", needs=Access.FULL, summary="Retrieve a sent email")
async def show(request: Request, db: TeamDb) -> Reply[wire.EmailsEmail]:
    email_id = request.uuid("email_id")
    found = await queries.get(db, email_id)
    drafts = request.services.find(DraftEmails)
    if found is None and drafts is not None and (sent_as := await drafts.find(db, email_id)) is not None:
        found = await queries.get(db, sent_as)
    if found is None:
        raise NotFound("Email")
    return Reply(wire.email(found))


@route(
    "PATCH",
    "/emails/{email_id}",
    needs=Access.FULL,
    body=wire.Reschedule,
    summary="Reschedule an email",
)
async def reschedule(request: Request, db: TeamDb) -> Reply[wire.EmailRef]:
    email_id = request.uuid("email_id")
    wanted = fields.parse(wire.Reschedule, request.json())
    at = parse.instant(wanted.scheduled_at, _now(request))
    await email_work.lock(db, email_id)
    if not await queries.reschedule(db, email_id, at):
        await _must_exist(db, email_id)
        raise OnlyScheduled("rescheduled")
    await email_work.move(db, email_id, at)
    return Reply(_ref(email_id))


@route("POST", "/emails/{email_id}/cancel", needs=Access.FULL, summary="Cancel an email")
async def cancel(request: Request, db: TeamDb) -> Reply[wire.EmailRef]:
    email_id = request.uuid("email_id")
    await email_work.lock(db, email_id)
    now = _now(request)
    if await request.use(Timeline).cancel(db.connection, db.team_id, email_id, now):
        await email_work.drop(db, email_id)
        await counting.give_back(db, email_id)
    elif (await _must_exist(db, email_id)).last_event != "canceled":
        raise OnlyScheduled("canceled")
    return Reply(_ref(email_id))


@route(
    "POST",
    "/emails/{email_id}/share",
    needs=Access.FULL,
    body=wire.ShareIn,
    summary="Share an email by a link",
)
async def share_email(request: Request, db: TeamDb) -> Reply[wire.SharedLink]:
    email_id = request.uuid("email_id")
    wanted = fields.parse(wire.ShareIn, request.json())
    others = request.use(SharedMailSource)  # type: ignore[type-abstract]
    if await queries.get(db, email_id) is None and not await others.exists(db, email_id):
        raise NotFound("Email")
    url = request.use(share.ShareLinks).link(db.team_id, email_id, wanted.expires_in)
    return Reply(wire.SharedLink(object="email", id=email_id, url=url))


@route(
    "GET",
    "/emails/{email_id}/attachments",
    needs=Access.FULL,
    query=PAGING,
    summary="List the attachments of a sent email",
)
async def list_attachments(request: Request, db: TeamDb) -> Reply[ListOf[wire.EmailsAttachmentItem]]:
    page = Page.read(request.query, default=None)
    email_id = request.uuid("email_id")
    await _must_exist(db, email_id)
    rows = await queries.attachments(db, email_id)
    kept, more = ascending(rows, page)
    items = [_linked(wire.EmailsAttachmentItem, request, db, row) for row in kept]
    return Reply(ListOf(has_more=more, data=items))


@route(
    "GET",
    "/emails/{email_id}/attachments/{attachment_id}",
    needs=Access.FULL,
    summary="Retrieve an attachment of a sent email",
)
async def show_attachment(request: Request, db: TeamDb) -> Reply[wire.EmailsAttachment]:
    wanted = request.uuid("attachment_id")
    await _must_exist(db, request.uuid("email_id"))
    for row in await queries.attachments(db, request.uuid("email_id")):
        if row.id == wanted:
            return Reply(_linked(wire.EmailsAttachment, request, db, row))
    raise NotFound("Attachment")


@route(
    "GET",
    "/emails/{email_id}/events",
    needs=Access.FULL,
    summary="List what became of a sent email, step by step",
)
async def list_events(request: Request, db: TeamDb) -> Reply[ListOf[wire.Event]]:
    email_id = request.uuid("email_id")
    await _must_exist(db, email_id)
    rows = await history.events(db, email_id, MOST_EVENTS + 1)
    kept = [wire.event(row) for row in rows[:MOST_EVENTS]]
    return Reply(ListOf(has_more=len(rows) > MOST_EVENTS, data=kept))


@route(
    "GET",
    "/emails/{email_id}/insights",
    needs=Access.FULL,
    transaction=False,
    summary="List what may be held against a sent email",
)
async def show_insights(request: Request, db: TeamDb) -> Reply[wire.EmailInsights]:
    email_id = request.uuid("email_id")
    insights = await insights_of(db, request.use(Senders), email_id)
    if insights is None:
        raise NotFound("Email")
    return Reply(wire.email_insights(email_id, insights))


@route(
    "GET",
    "/emails/{email_id}/raw",
    needs=Access.FULL,
    transaction=False,
    summary="Link to a sent email as a message",
)
async def show_raw(request: Request, db: TeamDb) -> Reply[wire.RawEmail]:
    email_id = (await _must_exist(db, request.uuid("email_id"))).id
    url, ends = request.use(FileLinks).link(RAW, db.team_id, email_id)
    is_original = await request.use(SentMessages).is_original(db, email_id)
    return Reply(
        wire.RawEmail(
            object="email_raw",
            id=email_id,
            is_original=is_original,
            download_url=url,
            expires_at=iso_style(ends),
        )
    )


async def _must_exist(db: TeamDb, email_id: UUID) -> queries.EmailRow:
    found = await queries.get(db, email_id)
    if found is None:
        raise NotFound("Email")
    return found


def _ref(email_id: UUID) -> wire.EmailRef:
    return wire.EmailRef(object="email", id=email_id)


def _linked(kind: type[wire.A], request: Request, db: TeamDb, row: queries.StoredAttachment) -> wire.A:
    url, ends = request.use(FileLinks).link("attachment", db.team_id, row.id)
    return wire.attachment(kind, row, url, ends)
