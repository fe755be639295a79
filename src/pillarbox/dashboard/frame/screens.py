"""The table of screens: which page, where it stands in the navigation, and who may see it."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pillarbox.dashboard.frame.visit import Visit
from pillarbox.dashboard.people.page_visits import Form, form, page
from pillarbox.kernel.http.request import Html, Reply, Request
from pillarbox.people.roles import Right
from pillarbox.people.visitors import Visitor

ATTRIBUTE: Final = "__screens__"
GROUPS: Final = ("build", "audience", "inboxes", "team", "installation")
"""The parts of the navigation, in its order; each has a heading `navigation.<group>`."""

ScreenHandler = Callable[[Visit], Coroutine[Any, Any, Reply[Html]]]
ActHandler = Callable[[Visit, Form], Coroutine[Any, Any, Reply[Html]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class NavigationEntry:
    """A screen's place in the navigation: group, order there, icon, and its shortcut after `g`."""

    group: str
    order: int
    icon: str
    keys: str = ""

    def __post_init__(self) -> None:
        if self.group not in GROUPS:
            raise ValueError(f"{self.group} is no group of the navigation")


@dataclass(frozen=True, slots=True, kw_only=True)
class Screen:
    """One page of the dashboard. `title` is the key of a text, `words` that of more words to find it by."""

    path: str
    title: str
    right: Right
    navigation: NavigationEntry | None = None
    words: str | None = None
    for_operators: bool = False


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
) -> Callable[[ScreenHandler], Callable[[Request], Coroutine[Any, Any, Reply[Html]]]]:
    """Mark a function as the screen of a path. `title` is the key of a text. Members without `right` get 403.

    Screens without a parameter in their path are found by the search; those with `navigation` stand in the
    navigation. `confirm` asks for a recent login first. `query` gives the types of query parameters.
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
        "GET", path, summary=title, right=None if for_operators else right, confirm=confirm, query=query
    )

    def marked(handler: ScreenHandler) -> Callable[[Request], Coroutine[Any, Any, Reply[Html]]]:
        async def shown(request: Request, visitor: Visitor) -> Reply[Html]:
            return await handler(Visit(request, visitor, facts.path, facts.title))

        shown.__module__, shown.__qualname__, shown.__name__ = _names_of(handler)
        made = mark(shown)
        made.__dict__[ATTRIBUTE] = facts
        return made

    return marked


def act(
    path: str,
    *,
    title: str,
    back: str,
    right: Right = Right.USE,
    for_operators: bool = False,
    confirm: bool = False,
    keeps: Iterable[str] = (),
) -> Callable[[ActHandler], Callable[[Request], Coroutine[Any, Any, Reply[Html]]]]:
    """Mark a function as what a form does. Members without `right` get 403.

    `back` is the screen to return to from a login; `confirm` asks for a recent login first, and `keeps` names
    the fields that are filled in again after it.
    """
    mark = form(
        "POST",
        path,
        summary=title,
        right=None if for_operators else right,
        confirm=confirm,
        back=back,
        keeps=keeps,
    )

    def marked(handler: ActHandler) -> Callable[[Request], Coroutine[Any, Any, Reply[Html]]]:
        async def done(request: Request, visitor: Visitor, fields: Form) -> Reply[Html]:
            return await handler(Visit(request, visitor, path, title), fields)

        done.__module__, done.__qualname__, done.__name__ = _names_of(handler)
        return mark(done)

    return marked


def screens_of(handlers: Iterable[Any]) -> list[Screen]:
    """Return the screens among these handlers, in the order of the navigation, the others behind."""
    found = [
        handler.__dict__[ATTRIBUTE] for handler in handlers if ATTRIBUTE in getattr(handler, "__dict__", {})
    ]
    return sorted(found, key=_order)


def _order(entry: Screen) -> tuple[int, int, str]:
    if entry.navigation is None:
        return len(GROUPS), 0, entry.path
    return GROUPS.index(entry.navigation.group), entry.navigation.order, entry.path


def _names_of(handler: Any) -> tuple[str, str, str]:
    return handler.__module__, handler.__qualname__, handler.__name__
