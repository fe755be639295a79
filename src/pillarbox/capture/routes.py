"""The pages of captured mail. They work without scripts; whatever came by mail is escaped or framed."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Annotated, Any, NamedTuple, TypeVar
from urllib.parse import parse_qs, parse_qsl, quote, unquote, urlencode
from uuid import UUID

import asyncpg
from msgspec import Struct

from pillarbox.capture import access, message, queries
from pillarbox.capture.access import CaptureAccess, CaptureForbidden, ForeignPage, NoToken
from pillarbox.capture.arrivals import Filters
from pillarbox.capture.message import CapturedMessage, CapturedPart
from pillarbox.capture.queries import CapturedRow
from pillarbox.capture.reading import Reader
from pillarbox.capture.store import Capture
from pillarbox.dashboard import mail_html, pages
from pillarbox.dashboard.page_work import PageWork
from pillarbox.emails import wire as email_wire
from pillarbox.kernel.http.files import disposition
from pillarbox.kernel.http.request import Html, OctetsAnswer, Reply, Request
from pillarbox.kernel.http.routing import Access, route
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.wire.fields import parse, read_by
from pillarbox.kernel.wire.paging import PAGING, Page
from pillarbox.kernel.wire.problems import NotFound, Problem
from pillarbox.kernel.wire.uuids import well_formed
from pillarbox.receiving.retention import ReceivedRetention
from pillarbox.timeline import history

ON_A_PAGE = 50
SOURCE_SHOWN = 256 * 1024
MOST_EVENTS = 200
FORM_BYTES = 4096
MOST_FIELDS = 10

SANDBOX = "sandbox allow-popups allow-popups-to-escape-sandbox; frame-ancestors 'self'"
LOCKED = {
    "content-security-policy": "sandbox; default-src 'none'",
    "referrer-policy": "no-referrer",
}

Shown = TypeVar("Shown")
Shows = Callable[[Request], Coroutine[Any, Any, Reply[Shown]]]

PAGES = (403, 404, 422)
"""Problems that a person sees as a page."""


TOKEN = {"token": str}
"""Of the printed link."""


def _or_empty(value: str | None, _: str) -> str:
    return value or ""


class ClearForm(Struct):
    """The page's own form; with `received`, received mail is removed too."""

    form: Annotated[str, read_by(_or_empty, absent=True)]
    received: str | None = None


class Tab(NamedTuple):
    """One view of a mail."""

    name: str
    title: str
    amount: int | None = None


def page_for_problems(show: Shows[Shown]) -> Shows[Shown]:
    """Answer a problem with a page."""

    @wraps(show)
    async def shown(request: Request) -> Reply[Any]:
        try:
            return await show(request)
        except Problem as problem:
            return problem_page(problem)

    return shown


def for_people(show: Shows[Shown]) -> Shows[Shown]:
    """Wrap the handler of a page: admit by the printed link, and answer a problem with a page."""

    @wraps(show)
    async def shown(request: Request) -> Reply[Any]:
        return enter(request) or await show(request)

    return page_for_problems(shown)


def enter(request: Request) -> Reply[Html] | None:
    """Return a redirect that takes the token out of the address, when it is there; raises
    CaptureForbidden."""
    capture_access = request.use(CaptureAccess)
    token = request.query.last("token")
    if token is None or request.method == "POST":
        capture_access.admit(request)
        return None
    capture_access.check_peer_and_host(request)
    if not capture_access.is_token(token):
        raise NoToken
    rest = parse_qsl(request.scope["query_string"].decode("latin-1"), keep_blank_values=True)
    query = urlencode([pair for pair in rest if pair[0] != "token"])
    target = quote(request.path) + (f"?{query}" if query else "")
    headers = {"location": target, "set-cookie": capture_access.cookie_header(request), **LOCKED}
    return Reply.html("", 303, headers)


def problem_page(problem: Problem) -> Reply[Html]:
    """Return the page that a person sees instead of the contract's error body."""
    if isinstance(problem, NoToken):
        return pages.message_page(
            "The link is needed",
            "Captured mail opens with the link that pillarbox serve prints when it starts, on the line "
            "that begins with the word Captured (or capture, in a log). The link is new at every start.",
            status=403,
            link=("/capture", "I have opened it already"),
        )
    if isinstance(problem, CaptureForbidden):
        return pages.message_page("Not from here", problem.message, status=problem.status)
    title = "This mail is not here" if isinstance(problem, NotFound) else "That did not work"
    return pages.message_page(
        title, problem.message, status=problem.status, link=("/capture", "All captured mail")
    )


@route(
    "GET",
    "/capture",
    needs=Access.PUBLIC,
    query={**PAGING, **TOKEN, "q": str},
    also=(303,),
    pages=PAGES,
    summary="Read captured mail in a browser (route capture only)",
)
@for_people
async def show_list(request: Request) -> Reply[Html]:
    """Show the captured mails, newest first."""
    page = Page.read(request.query, ON_A_PAGE)
    search = (request.query.text("q") or "").strip()
    capture = request.use(Capture)
    rows = await capture.arrivals.find(Filters(anything=search), page)
    mails = rows[: page.limit]
    more = len(rows) > len(mails)
    if page.before:
        mails.reverse()
    older = more if not page.before else True
    newer = more if page.before else page.after is not None
    return pages.page(
        "capture_list.html",
        mails=mails,
        kept=await queries.count(request.use(asyncpg.Pool)),
        search=search,
        form=request.use(CaptureAccess).derived("form"),
        newer=_turned(search, "before", mails[0].id) if mails and newer else None,
        older=_turned(search, "after", mails[-1].id) if mails and older else None,
    )


@route(
    "GET",
    "/capture/{mail}",
    needs=Access.PUBLIC,
    query={**TOKEN, "view": str},
    also=(303,),
    pages=PAGES,
    summary="Read one captured mail in a browser",
)
@for_people
async def show_mail(request: Request) -> Reply[Html]:
    """Show one mail in the view that is asked for, or in the best that it has."""
    row = await _row(request)
    reader = request.use(Reader)
    asked = request.query.text("view") or ""
    source = await reader.source(row, SOURCE_SHOWN) if asked == "raw" else b""
    events = await _events(request, row) if asked == "events" else []
    drawn = _drawn(reader.work, row, asked, _addresses(row, request), source, events)
    return await reader.read(row, drawn, request.is_client_gone)


@route(
    "GET",
    "/capture/{mail}/html",
    needs=Access.PUBLIC,
    query=TOKEN,
    also=(303,),
    pages=PAGES,
    summary="The HTML of a captured mail, for a frame",
)
@for_people
async def show_html(request: Request) -> Reply[Html]:
    """Show the document inside the frame: cleaned, sandboxed, and unable to load but its own pictures."""
    row = await _row(request)
    reader, address = request.use(Reader), _addresses(row, request)
    pictures = f"data: {access.origin(request)}/capture/{row.id}/parts/"
    policy = f"{mail_html.POLICY.format(images=pictures)}; {SANDBOX}"
    headers = {"content-security-policy": policy, "referrer-policy": "no-referrer"}

    def drawn(raw: bytes) -> Reply:
        shown = _cleaned(reader.work, message.read(raw), address)
        return Reply.html(mail_html.document(shown, pictures), 200, headers)

    return await reader.read(row, drawn, request.is_client_gone)


@route(
    "GET",
    "/capture/{mail}/raw",
    needs=Access.PUBLIC,
    query=TOKEN,
    also=(303,),
    pages=PAGES,
    summary="Download a captured mail as it would go out",
)
@for_people
async def download_raw(request: Request) -> Reply[OctetsAnswer]:
    """Send the message, octet for octet."""
    row = await _row(request)
    headers = {**LOCKED, "content-disposition": disposition(f"{row.email_id}.eml")}
    stream = await request.use(Reader).stream(row)
    return Reply.stream(stream, size=row.size, media="message/rfc822", headers=headers)


@route(
    "GET",
    "/capture/{mail}/parts/{number}",
    needs=Access.PUBLIC,
    query={"key": str},
    pages=PAGES,
    summary="A file of a captured mail",
)
@page_for_problems
async def show_part(request: Request) -> Reply[OctetsAnswer]:
    """Send an attachment as a download; a picture that the HTML shows, as itself."""
    return await _part_reply(request)


@route(
    "POST",
    "/capture/clear",
    needs=Access.PUBLIC,
    multipart=True,
    media="application/x-www-form-urlencoded",
    body=ClearForm,
    limit=FORM_BYTES,
    status=303,
    pages=PAGES,
    summary="Remove all captured mail, from the page",
)
@for_people
async def clear(request: Request) -> Reply[Html]:
    """Remove every captured mail, and with `received` every received one; the page's own form alone may ask
    for it (UI-06)."""
    capture_access = request.use(CaptureAccess)
    capture_access.admit_change(request)
    try:
        fields = parse_qs(bytes(request.raw).decode("latin-1"), max_num_fields=MOST_FIELDS)
    except ValueError:
        raise ForeignPage from None
    wanted = parse(ClearForm, {name: values[-1] for name, values in fields.items()})
    if not capture_access.is_form_key(wanted.form):
        raise ForeignPage
    await request.use(Capture).clear()
    if wanted.received:
        await request.use(ReceivedRetention).clear()
    return Reply.html("", 303, {"location": "/capture"})


def tabs_of(message: CapturedMessage, link_count: int, *, has_history: bool) -> list[Tab]:
    """Return the views that this mail has, the best one first."""
    tabs = [Tab("html", "HTML")] if message.html is not None else []
    if message.text is not None:
        tabs.append(Tab("text", "Text"))
    tabs += [Tab("headers", "Headers"), Tab("raw", "Raw")]
    if message.parts:
        tabs.append(Tab("attachments", "Attachments", len(message.parts)))
    if link_count:
        tabs.append(Tab("links", "Links", link_count))
    return [*tabs, Tab("events", "Events")] if has_history else tabs


def _turned(search: str, direction: str, captured_id: UUID) -> str:
    return "/capture?" + urlencode([*([("q", search)] if search else []), (direction, str(captured_id))])


async def _row(request: Request) -> CapturedRow:
    text = request.param("mail")
    if not well_formed(text):
        raise NotFound("Captured mail")
    return await request.use(Reader).row(UUID(text))


def _drawn(
    work: PageWork,
    row: CapturedRow,
    asked: str,
    address: Callable[[int], str],
    source: bytes,
    events: list[email_wire.Event],
) -> Callable[[bytes], Reply]:
    """Return the function that makes the page of a mail from its message; it runs in a thread."""

    def drawn(raw: bytes) -> Reply:
        found = message.read(raw)
        found_links = work.links(found.html) if found.html else []
        tabs = tabs_of(found, len(found_links), has_history=not row.inbound)
        view = asked if asked in {tab.name for tab in tabs} else tabs[0].name
        shown = _cleaned(work, found, address) if view == "html" else None
        text, text_is_cut = pages.beginning(found.text)
        return pages.page(
            "capture_mail.html",
            search="",
            mail=row,
            message=found,
            tabs=tabs,
            view=view,
            links=found_links,
            left_out=shown.left_out if shown else 0,
            is_cut=shown is not None and shown.is_cut,
            text=text,
            text_is_cut=text_is_cut,
            source=source.decode("utf-8", "replace").replace("\r\n", "\n"),
            source_cut=row.size > SOURCE_SHOWN,
            events=events,
        )

    return drawn


def _addresses(row: CapturedRow, request: Request) -> Callable[[int], str]:
    """Return the address of a picture of the mail by the number of its part."""
    capture_access, origin = request.use(CaptureAccess), access.origin(request)

    def address(number: int) -> str:
        return f"{origin}/capture/{row.id}/parts/{number}?key={capture_access.picture_key(row.id, number)}"

    return address


def _cleaned(
    work: PageWork, captured_message: CapturedMessage, address: Callable[[int], str]
) -> mail_html.ShownMail:
    """Return the HTML with the addresses of its own pictures in place of their content ids."""
    pictures = {part.cid: part.number for part in captured_message.parts if part.cid and part.is_picture}

    def picture(cid: str) -> str | None:
        number = pictures.get(unquote(cid))
        return None if number is None else address(number)

    return mail_html.with_pictures(work.cleaned(captured_message.html or ""), picture)


async def _events(request: Request, row: CapturedRow) -> list[email_wire.Event]:
    db = TeamDb(request.use(asyncpg.Pool), row.team_id)
    return [email_wire.event(line) for line in await history.events(db, row.email_id, MOST_EVENTS)]


async def _part_reply(request: Request) -> Reply[OctetsAnswer]:
    capture_access = request.use(CaptureAccess)
    text, number = request.param("mail"), request.param("number")
    if not well_formed(text) or not number.isascii() or not number.isdigit() or len(number) > 4:
        capture_access.admit(request)
        raise NotFound("Attachment")
    captured_id = UUID(text)
    framed = capture_access.is_picture_key(request.query.last("key"), captured_id, int(number))
    if framed:
        capture_access.check_peer_and_host(request)
    else:
        capture_access.admit(request)
    reader = request.use(Reader)
    row = await reader.row(captured_id)
    part, content = await reader.part(row, int(number), request.is_client_gone)
    return file_reply(part, content, as_picture=framed and part.is_picture)


def file_reply(part: CapturedPart, content: bytes, *, as_picture: bool) -> Reply[OctetsAnswer]:
    """Send the bytes of a part: a picture for the frame, or a download that no browser opens."""
    if as_picture:
        return Reply(content, 200, dict(LOCKED), part.content_type)
    headers = {**LOCKED, "content-disposition": disposition(part.filename)}
    return Reply(content, 200, headers, part.content_type)
