"""A form of a screen that brings a file: it is read while it comes, and never held as a whole.

The first part is the form's token, so that nothing of the file is read for a form of another site. A form
that is refused closes its connection, since the rest of it is not read.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, Final

import asyncpg

from pillarbox.dashboard.frame.visit import Visit
from pillarbox.dashboard.people.cookies import cookie
from pillarbox.dashboard.people.local_paths import with_return
from pillarbox.dashboard.people.page_visits import (
    FAILURES,
    RIGHTS,
    PageRights,
    failure_page,
    hold_to_bounds,
    is_allowed,
    is_from_our_page,
    message_page,
    refused,
    see_other,
    with_pages,
)
from pillarbox.dashboard.texts import t
from pillarbox.kernel.http.body import CLOSE
from pillarbox.kernel.http.maintenance import Maintenance
from pillarbox.kernel.http.multipart import FormPart, MultipartForm, boundary_of
from pillarbox.kernel.http.request import Html, Reply, Request
from pillarbox.kernel.http.routing import Access, route
from pillarbox.kernel.wire.problems import Problem
from pillarbox.people.roles import Right
from pillarbox.people.visitors import Visitor, visitor_of

LONGEST_TOKEN: Final = 200
TOKEN: Final = "csrf_token"  # noqa: S105 - the name of a field
OWN: Final = 303

FileHandler = Callable[[Visit, MultipartForm, FormPart], Coroutine[Any, Any, Reply[Html]]]
"""Handles the part with the file; it has read nothing of it yet."""


def file_form(
    path: str, *, title: str, back: str, field: str, limit: int, right: Right = Right.USE
) -> Callable[[FileHandler], Callable[[Request], Coroutine[Any, Any, Reply[Html]]]]:
    """Mark a function as what a form with a file in `field` does. Members without `right` get 403.

    `back` is the screen to return to from a login, and where a form without a file leads; `limit` bounds the
    form's octets. The handler records what it does."""

    def marked(handler: FileHandler) -> Callable[[Request], Coroutine[Any, Any, Reply[Html]]]:
        @wraps(handler)
        async def submitted(request: Request) -> Reply[Html]:
            visitor = await visitor_of(request.use(asyncpg.Pool), request.at, cookie(request))
            if visitor is None:
                return _closing(see_other(with_return("/login", back)))
            hold_to_bounds(request, visitor)
            if not is_allowed(visitor, right, for_operators=False):
                return _closing(refused(visitor))
            if visitor.is_team_blocked:
                return _closing(refused(visitor, text="team.blocked"))
            visit = Visit(request, visitor, path, title)
            try:
                return await _handled(visit, visitor, handler)
            except Problem as problem:
                return _closing(await visit.failed(problem))

        async def _handled(visit: Visit, visitor: Visitor, handler: FileHandler) -> Reply[Html]:
            request = visit.request
            maintenance = request.services.find(Maintenance)
            if maintenance is not None:
                maintenance.check()
            boundary = boundary_of(request.raw_header(b"content-type"))
            if boundary is None or request.cycle is None:
                return _closing(
                    message_page(t("form.unreadable.title"), t("form.unreadable.text"), status=400)
                )
            form = MultipartForm(request.cycle, boundary, limit)
            first = await form.next()
            given = await form.text(LONGEST_TOKEN) if first is not None and first.name == TOKEN else ""
            if not is_from_our_page(request) or not hmac.compare_digest(
                given.encode(), visitor.form_token.encode()
            ):
                return _closing(message_page(t("form.foreign.title"), t("form.foreign.text"), status=403))
            while (part := await form.next()) is not None:
                if part.name == field:
                    return await handler(visit, form, part)
            return visit.to(back)

        wrapped = with_pages(submitted)
        wrapped.__dict__[RIGHTS] = PageRights(right, for_operators=False)
        wrapped.__annotations__ = {"request": Request, "return": Reply[Html]}
        return route(
            "POST",
            path,
            needs=Access.PUBLIC,
            summary=title,
            limit=limit,
            streamed=True,
            also=(OWN,),
            pages=FAILURES,
            screen=failure_page,
        )(wrapped)

    return marked


def _closing(reply: Reply[Html]) -> Reply[Html]:
    reply.headers.update(CLOSE)
    return reply
