"""The common part of all pages of people: session, headers, and forms that are their own.

`@page` and `@form` are for whoever has logged in, `@open_page` and `@open_form` for everybody. A form counts
only if the browser says that a page of this site sent it. It must carry the token of the session, or of the
cookie that pages before the login set (UI-06). Handlers open their own transactions; hashing of passwords
must not hold one.
"""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, Final
from urllib.parse import parse_qsl, unquote, urlsplit

import asyncpg

from pillarbox.dashboard import pages
from pillarbox.dashboard.frame.times import use_zone
from pillarbox.dashboard.people import saved_form
from pillarbox.dashboard.people.cookies import FORM_COOKIE, LANGUAGE_COOKIE, ZONE_COOKIE, cookie, form_cookie
from pillarbox.dashboard.people.device_cookie import with_device
from pillarbox.dashboard.people.local_paths import local_path, with_return
from pillarbox.dashboard.people.saved_form import NOTHING, SavedForm
from pillarbox.dashboard.people.uploaded_files import UploadedFile, parts_of
from pillarbox.dashboard.texts import t, use_language
from pillarbox.kernel.http.failures import problem_for
from pillarbox.kernel.http.maintenance import UnderMaintenance
from pillarbox.kernel.http.request import Html, OctetsAnswer, Reply, Request
from pillarbox.kernel.http.routing import Access, route
from pillarbox.kernel.observability.request_log import READS
from pillarbox.kernel.postgres import time_limit
from pillarbox.kernel.postgres.database import GONE
from pillarbox.kernel.security.rate_limit import Windows, key_for
from pillarbox.kernel.wire.problems import NotAUuid, NotFound, Problem, RateLimited
from pillarbox.people import sessions
from pillarbox.people.audit import Actor
from pillarbox.people.roles import Right
from pillarbox.people.sessions import SessionOrigin
from pillarbox.people.visitors import Visitor, visitor_of

FORM_MEDIA: Final = "application/x-www-form-urlencoded"
FILES_MEDIA: Final = "multipart/form-data"
FORM_BYTES: Final = 64 * 1024
MOST_FIELDS: Final = 200
REQUESTS: Final = 300
REQUEST_SECONDS: Final = 10.0
"""Requests of one person within so many seconds, whatever pages they open."""

FAILURES: Final = (400, 403, 404, 409, 410, 422, 429, 503)
"""Statuses that a person sees as a page."""

HEADERS: Final = {**pages.HEADERS, "cache-control": "no-store", "referrer-policy": "same-origin"}


@dataclass(frozen=True, slots=True)
class Form:
    """The fields of a form, as they were sent."""

    fields: tuple[tuple[str, str], ...] = ()
    files: tuple[UploadedFile, ...] = ()

    def get(self, name: str, default: str = "") -> str:
        """Return the first field of that name."""
        return next((value for key, value in self.fields if key == name), default)

    def every(self, name: str) -> list[str]:
        """Return all fields of that name."""
        return [value for key, value in self.fields if key == name]


@dataclass(frozen=True, slots=True)
class PageGuest:
    """A visitor of a page that needs no session; `visitor` where there is one all the same. `form_token` is
    that of the session or of the form cookie; `new_cookie` is set with the answer."""

    form_token: str = field(repr=False)
    visitor: Visitor | None = None
    new_cookie: str | None = field(default=None, repr=False)


PageHandler = Callable[[Request, Visitor], Coroutine[Any, Any, Reply[Html]]]
FormHandler = Callable[[Request, Visitor, Form], Coroutine[Any, Any, Reply[Html]]]
OpenPageHandler = Callable[[Request, PageGuest], Coroutine[Any, Any, Reply[Html]]]
OpenFormHandler = Callable[[Request, PageGuest, Form], Coroutine[Any, Any, Reply[Html]]]
Handler = Callable[[Request], Coroutine[Any, Any, Reply[Html]]]


@dataclass(frozen=True, slots=True)
class PageRights:
    """The rights that a page or a form asks for; `right` is None where being logged in is enough."""

    right: Right | None
    for_operators: bool


RIGHTS: Final = "__page_rights__"
"""The attribute of a handler that holds its `PageRights`; pages for everybody have none."""


# Answers ------------------------------------------------------------------------------------------


def draw(
    template: str,
    *,
    visitor: Visitor | PageGuest | None = None,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
    form_targets: Iterable[str] = (),
    has_scripts: bool = False,
    kept: SavedForm = NOTHING,
    **values: Any,
) -> Reply[Html]:
    """Draw a page with all headers of UI-04. The template knows `visitor` (None for a guest without a
    session), `form_token`, and `kept`, the values that it fills in. `form_targets` are origins to which the
    answer of a form may send the browser on; `has_scripts` allows script files of this site."""
    person = visitor.visitor if isinstance(visitor, PageGuest) else visitor
    policy = policy_with(form_targets, has_scripts=has_scripts)
    return pages.page(
        template,
        status=status,
        headers={**HEADERS, "content-security-policy": policy, **(headers or {})},
        visitor=person,
        form_token=visitor.form_token if visitor else "",
        kept=kept,
        **values,
    )


def policy_with(form_targets: Iterable[str] = (), *, has_scripts: bool = False) -> str:
    """Return the Content-Security-Policy of a page of people: no code in the page, and none from
    elsewhere."""
    scripts = "script-src 'self'; connect-src 'self'; " if has_scripts else ""
    targets = " ".join(["'self'", *form_targets])
    return (
        f"default-src 'none'; {scripts}style-src 'sha256-{pages.STYLES_HASH}'; img-src 'self' data:; "
        f"form-action {targets}; base-uri 'none'; frame-ancestors 'none'"
    )


def message_page(title: str, text: str, *, status: int, link: tuple[str, str] | None = None) -> Reply[Html]:
    """Show a page that says one thing; `link` is an address and its text."""
    return draw("people/message.html", status=status, title=title, text=text, link=link)


def see_other(path: str, *, cookie: str | None = None) -> Reply[Html]:
    """Return a 303 to a path of this site; to the beginning where `path` is none (UI-07)."""
    headers = {**HEADERS, "location": local_path(path) or "/"}
    if cookie is not None:
        headers["set-cookie"] = cookie
    return Reply.html("", 303, headers)


# Requests -----------------------------------------------------------------------------------------


def origin_of(request: Request) -> SessionOrigin:
    """Return the origin of the request, for lists of sessions and the log of acts."""
    return SessionOrigin(request.client or None, request.header("user-agent"))


def actor_of(request: Request, visitor: Visitor) -> Actor:
    """Return the visitor as the actor whom the log of acts names."""
    address, agent = origin_of(request)
    return Actor(person_id=visitor.person_id, name=visitor.email, address=address, user_agent=agent)


def is_from_our_page(request: Request) -> bool:
    """Return whether the browser says that a page of this site sent the form."""
    site = request.header("sec-fetch-site")
    if site is not None:
        return site == "same-origin"
    try:
        sender = urlsplit(request.header("origin") or "")
    except ValueError:
        return False
    return sender.scheme in ("http", "https") and sender.netloc == request.header("host")


async def guest_of(request: Request) -> PageGuest:
    """Return the visitor, with or without a session."""
    visitor = await visitor_of(request.use(asyncpg.Pool), request.at, cookie(request))
    if visitor is not None:
        return PageGuest(visitor.form_token, visitor)
    known = cookie(request, FORM_COOKIE)
    if known and len(known) <= sessions.LONGEST_TOKEN:
        return PageGuest(sessions.form_token(known))
    token = sessions.new_token()
    return PageGuest(sessions.form_token(token), None, form_cookie(token))


def fields_of(request: Request) -> Form | None:
    """Return the form of a request; None where its body is none."""
    media = (request.header("content-type") or "").partition(";")[0].strip().lower()
    if media == FILES_MEDIA:
        parts = parts_of(request.header("content-type") or "", bytes(request.raw))
        if parts is None:
            return None
        names = [text for file in parts[1] for text in (file.field, file.name)]
        if any("\0" in text for text in (*names, *(value for pair in parts[0] for value in pair))):
            return None
        return Form(tuple(parts[0]), tuple(parts[1]))
    if media != FORM_MEDIA:
        return None
    try:
        pairs = parse_qsl(
            bytes(request.raw).decode("ascii"),
            keep_blank_values=True,
            errors="strict",
            max_num_fields=MOST_FIELDS,
        )
    except ValueError:
        return None
    return None if any("\0" in value for pair in pairs for value in pair) else Form(tuple(pairs))


async def _own_form(request: Request, form_token: str) -> Form | Reply[Html]:
    """Return the form, or the page that says why it does not count. Large ones are read in a thread."""
    is_large = len(request.raw) > FORM_BYTES
    found = await asyncio.to_thread(fields_of, request) if is_large else fields_of(request)
    if found is None:
        return message_page(t("form.unreadable.title"), t("form.unreadable.text"), status=400)
    given = found.get("csrf_token")
    if not is_from_our_page(request) or not hmac.compare_digest(given.encode(), form_token.encode()):
        return message_page(
            t("form.foreign.title"), t("form.foreign.text"), status=403, link=("/", t("form.foreign.link"))
        )
    return found


# Routes -------------------------------------------------------------------------------------------


def failure_page(request: Request, problem: Problem) -> Reply[Html]:
    """Return the page that a browser sees of a request that came to no page."""
    _use_language_of(request)
    link = ("/", t("missing.link"))
    if problem.status in (404, 405) or isinstance(problem, NotAUuid):
        return _problem_page(problem, t("missing.title"), t("missing.text"), link)
    return _problem_page(problem, *problem_texts(problem), link)


def problem_texts(problem: Problem) -> tuple[str, str]:
    """Return title and text of a problem as people read them."""
    if isinstance(problem, UnderMaintenance):
        return t("maintenance.title"), t("maintenance.text")
    if isinstance(problem, NotFound):
        return t("gone.title"), t("gone.text", problem=problem.message)
    if problem.status == 413:
        return t("too_large.title"), t("too_large.text")
    return t("failed.title"), problem.message


def _use_language_of(request: Request) -> None:
    use_language(cookie(request, LANGUAGE_COOKIE), request.header("accept-language"))


def _problem_page(
    problem: Problem, title: str, text: str, link: tuple[str, str] | None = None
) -> Reply[Html]:
    reply = message_page(title, text, status=problem.status, link=link)
    reply.headers.update(problem.headers)
    return reply


def with_pages(handler: Handler) -> Handler:
    """Wrap the handler so that a problem is shown as a page."""

    @wraps(handler)
    async def shown(request: Request) -> Reply[Html]:
        _use_language_of(request)
        use_zone(unquote(cookie(request, ZONE_COOKIE) or ""))
        try:
            return await handler(request)
        except (Problem, *GONE) as failure:
            problem = problem_for(failure, request.id)
            return _problem_page(problem, *problem_texts(problem), ("/", t("missing.link")))

    return shown


def _marked(
    method: str,
    path: str,
    summary: str,
    query: Mapping[str, Any] | None,
    limit: int = FORM_BYTES,
    *,
    is_file: bool = False,
) -> Callable[[Handler], Handler]:
    is_form = method == "POST"

    def mark(handler: Handler) -> Handler:
        answer = Reply[OctetsAnswer] if is_file else Reply[Html]
        handler.__annotations__ = {"request": Request, "return": answer}
        return route(
            method,
            path,
            needs=Access.PUBLIC,
            summary=summary,
            query=query,
            limit=limit,
            multipart=is_form,
            media=FORM_MEDIA if is_form else None,
            also=(303,),
            pages=FAILURES,
            screen=failure_page,
        )(handler)

    return mark


def hold_to_bounds(request: Request, visitor: Visitor) -> None:
    """Count the request for the person, and its database work for their team; raises RateLimited."""
    taken = request.use(Windows).take(key_for(f"pages of {visitor.person_id}"), REQUESTS, REQUEST_SECONDS)
    if not taken.allowed:
        raise RateLimited(t("visits.too_many"), {"retry-after": str(taken.reset)})
    if visitor.team_id is not None:
        time_limit.belongs_to(visitor.team_id, is_read=request.method in READS)


def page(
    method: str,
    path: str,
    *,
    summary: str,
    right: Right | None = None,
    for_operators: bool = False,
    confirm: bool = False,
    query: Mapping[str, Any] | None = None,
    without_team: str | None = None,
    is_file: bool = False,
) -> Callable[[PageHandler], Handler]:
    """Mark a page for people who have logged in; others are sent to the login and come back. 403 for members
    without the `right` in their current team; with `for_operators`, for everybody who is no operator of the
    installation. `confirm` requires a recent login first. People without a team are sent to `without_team`,
    where it is given.
    """

    def made(handler: PageHandler) -> Handler:
        @wraps(handler)
        async def shown(request: Request) -> Reply[Html]:
            visitor = await visitor_of(request.use(asyncpg.Pool), request.at, cookie(request))
            if visitor is None:
                return see_other(with_return("/login", _here(request)))
            hold_to_bounds(request, visitor)
            if without_team is not None and visitor.team_id is None:
                return see_other(without_team)
            if not is_allowed(visitor, right, for_operators=for_operators):
                return refused(visitor, for_operators=for_operators)
            if confirm and not visitor.is_confirmed(request.at):
                return see_other(with_return("/confirm", _here(request)))
            reply = saved_form.taken_away(request, visitor, await handler(request, visitor))
            return with_device(request, reply, visitor.person_id, visitor.session_id)

        wrapped = with_pages(shown)
        wrapped.__dict__[RIGHTS] = PageRights(right, for_operators)
        return _marked(method, path, summary, query, is_file=is_file)(wrapped)

    return made


def form(
    method: str,
    path: str,
    *,
    summary: str,
    right: Right | None = None,
    for_operators: bool = False,
    confirm: bool = False,
    back: str | None = None,
    keeps: Iterable[str] = (),
    limit: int = FORM_BYTES,
    while_blocked: bool = False,
) -> Callable[[FormHandler], Handler]:
    """Declare a form for people who have logged in. With `confirm` a person who has not proved lately who
    they are does so first. They come to `back` then (without it to the form's own path), where the fields in
    `keeps` are filled in. `limit` bounds its octets. Members of a blocked team get 403, unless
    `while_blocked` says that the form only takes access away.
    """
    names = frozenset(keeps)
    if names & saved_form.SECRETS:
        raise ValueError(f"{path} keeps secrets: {sorted(names & saved_form.SECRETS)}")

    def made(handler: FormHandler) -> Handler:
        @wraps(handler)
        async def submitted(request: Request) -> Reply[Html]:
            visitor = await visitor_of(request.use(asyncpg.Pool), request.at, cookie(request))
            if visitor is None:
                return see_other(with_return("/login", back))
            hold_to_bounds(request, visitor)
            fields = await _own_form(request, visitor.form_token)
            if isinstance(fields, Reply):
                return fields
            if not is_allowed(visitor, right, for_operators=for_operators):
                return refused(visitor, for_operators=for_operators)
            if right is not None and not while_blocked and visitor.is_team_blocked:
                return refused(visitor, text="team.blocked")
            if confirm and not visitor.is_confirmed(request.at):
                return to_confirm(request, visitor, fields, names, back)
            reply = await handler(request, visitor, fields)
            return saved_form.taken_away(request, visitor, reply, is_done=confirm)

        wrapped = with_pages(submitted)
        wrapped.__dict__[RIGHTS] = PageRights(right, for_operators)
        return _marked(method, path, summary, None, limit)(wrapped)

    return made


def open_page(
    method: str, path: str, *, summary: str, query: Mapping[str, Any] | None = None
) -> Callable[[OpenPageHandler], Handler]:
    """Declare a page for everybody."""

    def made(handler: OpenPageHandler) -> Handler:
        @wraps(handler)
        async def shown(request: Request) -> Reply[Html]:
            guest = await guest_of(request)
            return _with_cookie(await handler(request, guest), guest)

        return _marked(method, path, summary, query)(with_pages(shown))

    return made


def open_form(method: str, path: str, *, summary: str) -> Callable[[OpenFormHandler], Handler]:
    """Declare a form for everybody."""

    def made(handler: OpenFormHandler) -> Handler:
        @wraps(handler)
        async def submitted(request: Request) -> Reply[Html]:
            guest = await guest_of(request)
            fields = await _own_form(request, guest.form_token)
            if isinstance(fields, Reply):
                return _with_cookie(fields, guest)
            return _with_cookie(await handler(request, guest, fields), guest)

        return _marked(method, path, summary, None)(with_pages(submitted))

    return made


def to_confirm(
    request: Request, visitor: Visitor, fields: Form, keeps: Iterable[str], back: str | None = None
) -> Reply[Html]:
    """Send the visitors to the page where they prove who they are, and from there to `back` with the fields
    filled in."""
    place, names = back or request.path, frozenset(keeps)
    found = {name: value for name, value in fields.fields if name in names}
    return see_other(
        with_return("/confirm", place), cookie=saved_form.keeping(request, visitor, place, found)
    )


def is_allowed(visitor: Visitor, right: Right | None, *, for_operators: bool) -> bool:
    """Return whether the visitor has the right in their team, or is an operator where that is asked for."""
    if for_operators and not visitor.is_operator:
        return False
    return right is None or visitor.may(right)


def refused(visitor: Visitor, *, for_operators: bool = False, text: str = "refused.text") -> Reply[Html]:
    """Show a 403: the visitor's role in the team is not enough, or the page is for operators, or `text`."""
    return draw(
        "people/message.html",
        visitor=visitor,
        status=403,
        title=t("refused.title"),
        text=t("refused.operators" if for_operators else text),
        link=("/", t("refused.link")),
    )


def _with_cookie(reply: Reply[Html], guest: PageGuest) -> Reply[Html]:
    if guest.new_cookie is not None:
        reply.headers.setdefault("set-cookie", guest.new_cookie)
    return reply


def _here(request: Request) -> str:
    """Return the path that was asked for, as it was sent."""
    query = request.scope["query_string"].decode("latin-1")
    path = request.scope["raw_path"].decode("latin-1")
    return f"{path}?{query}" if query else path
