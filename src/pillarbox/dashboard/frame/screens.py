"""Marks functions as screens, and as what the forms of screens do."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import Any

from pillarbox.dashboard.frame.screen_table import ATTRIBUTE, NavigationEntry, Screen
from pillarbox.dashboard.frame.visit import Visit
from pillarbox.dashboard.people.page_visits import FORM_BYTES, Form, form, page
from pillarbox.kernel.http.maintenance import Maintenance
from pillarbox.kernel.http.request import Html, Reply, Request
from pillarbox.kernel.wire.problems import Problem
from pillarbox.people.audit import Act, recorded_acts
from pillarbox.people.roles import Right
from pillarbox.people.visitors import Visitor

ScreenHandler = Callable[[Visit], Coroutine[Any, Any, Reply[Html]]]
DONE = 303
"""The status of the answer to a form that was done: the browser goes on to a screen."""

ActHandler = Callable[[Visit, Form], Coroutine[Any, Any, Reply[Html]]]


def screen(
    path: str,
    *,
    title: str,
    right: Right = Right.VIEW,
    navigation: NavigationEntry | None = None,
    words: str | None = None,
    for_operators: bool = False,
    confirm: bool = False,
    query: Mapping[str, Any] | None = None,
    without_team: bool = False,
) -> Callable[[ScreenHandler], Callable[[Request], Coroutine[Any, Any, Reply[Html]]]]:
    """Mark a function as the screen of a path. `title` is the key of a text. Members without `right` get 403.

    With `for_operators` it is for operators of the installation alone, whatever their team, if they have one.
    Screens without a parameter in their path are found by the search; those with `navigation` stand in the
    navigation. `confirm` asks for a recent login first. `query` gives the types of query parameters.
    With `without_team` people without a team see it as well; others are sent to their account.
    """
    facts = Screen(
        path=path,
        title=title,
        right=right,
        navigation=navigation,
        words=words,
        for_operators=for_operators,
    )
    mark = page(
        "GET",
        path,
        summary=title,
        right=None if for_operators or without_team else right,
        for_operators=for_operators,
        confirm=confirm,
        query=query,
        without_team=None if for_operators or without_team else "/account",
    )

    def marked(handler: ScreenHandler) -> Callable[[Request], Coroutine[Any, Any, Reply[Html]]]:
        async def shown(request: Request, visitor: Visitor) -> Reply[Html]:
            visit = Visit(request, visitor, facts.path, facts.title)
            try:
                return await handler(visit)
            except Problem as problem:
                return await visit.failed(problem)

        shown.__module__, shown.__qualname__, shown.__name__ = _names_of(handler)
        made = mark(shown)
        made.__dict__[ATTRIBUTE] = facts
        return made

    return marked


def download(
    path: str, *, title: str, right: Right = Right.VIEW, query: Mapping[str, Any] | None = None
) -> Callable[[ScreenHandler], Callable[[Request], Coroutine[Any, Any, Reply[Html]]]]:
    """Mark a function as a file that a screen links to; it answers with `Visit.save`. It is no screen."""
    mark = page("GET", path, summary=title, right=right, query=query, without_team="/account", is_file=True)

    def marked(handler: ScreenHandler) -> Callable[[Request], Coroutine[Any, Any, Reply[Html]]]:
        async def saved(request: Request, visitor: Visitor) -> Reply[Html]:
            return await handler(Visit(request, visitor, path, title))

        saved.__module__, saved.__qualname__, saved.__name__ = _names_of(handler)
        return mark(saved)

    return marked


def act(
    path: str,
    *,
    title: str,
    back: str,
    records: Act | None = None,
    right: Right = Right.USE,
    for_operators: bool = False,
    confirm: bool = False,
    keeps: Iterable[str] = (),
    limit: int = FORM_BYTES,
) -> Callable[[ActHandler], Callable[[Request], Coroutine[Any, Any, Reply[Html]]]]:
    """Mark a function as what a form does. Members without `right` get 403,
    with `for_operators` everybody who is no operator of the installation.

    `back` is the screen to return to from a login; `confirm` asks for a recent login first, and `keeps` names
    the fields that are filled in again after it. `limit` bounds the form's octets.

    `records` is what the log of acts says, unless the act has recorded something itself. The line is written
    in the transaction of the first call that changes anything, and `Visit.acts_on` says before what it names.
    Where no call has such a transaction it is written afterwards, if the act answers with a redirect or calls
    `Visit.has_acted`. Without `records` the act records all that it does, or changes nothing.
    """
    mark = form(
        "POST",
        path,
        summary=title,
        right=None if for_operators else right,
        for_operators=for_operators,
        confirm=confirm,
        back=back,
        keeps=keeps,
        limit=limit,
    )

    def marked(handler: ActHandler) -> Callable[[Request], Coroutine[Any, Any, Reply[Html]]]:
        async def done(request: Request, visitor: Visitor, fields: Form) -> Reply[Html]:
            visit = Visit(request, visitor, path, title)
            visit.records = records if visitor.team_id is not None and not for_operators else None
            maintenance = request.services.find(Maintenance)
            try:
                if maintenance is not None and not for_operators:
                    maintenance.check()
                with recorded_acts() as acts:
                    visit.recorded = acts
                    reply = await handler(visit, fields)
            except Problem as problem:
                reply = await visit.failed(problem)
                acts = []
            what = visit.acted.what or records if visit.acted else records if reply.status == DONE else None
            if what is not None and not acts and not visit.is_recorded:
                await visit.record(what, team_id=None if for_operators else visitor.team_id)
            return reply

        done.__module__, done.__qualname__, done.__name__ = _names_of(handler)
        return mark(done)

    return marked


def _names_of(handler: Any) -> tuple[str, str, str]:
    return handler.__module__, handler.__qualname__, handler.__name__
