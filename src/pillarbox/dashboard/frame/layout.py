"""The layout of every screen: navigation, team, notices, and the calls of the API behind the page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import asyncpg

from pillarbox.dashboard.frame import assets
from pillarbox.dashboard.frame.code_samples import first_mail, samples_of
from pillarbox.dashboard.pages import page
from pillarbox.dashboard.people import saved_form
from pillarbox.dashboard.people.page_visits import HEADERS
from pillarbox.dashboard.texts import t
from pillarbox.kernel.http.request import Html, Reply
from pillarbox.people.membership import members
from pillarbox.people.visitors import Visitor

if TYPE_CHECKING:
    from pillarbox.dashboard.frame.screens import Screen
    from pillarbox.dashboard.frame.visit import Visit

POLICY: Final = (
    "default-src 'none'; script-src 'self'; connect-src 'self'; style-src 'self'; img-src 'self' data:; "
    "frame-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""No code and no style in the page, and nothing from elsewhere."""


class NavigationLink(NamedTuple):
    """One entry of the navigation as the layout draws it."""

    path: str
    text: str
    icon: str
    keys: str
    is_here: bool


class NavigationGroup(NamedTuple):
    """A heading of the navigation with its entries."""

    heading: str
    links: list[NavigationLink]


class ScreenTable:
    """All screens, in the order of the navigation."""

    def __init__(self, screens: Sequence[Screen], public_url: str) -> None:
        self.screens = screens
        self.public_url = public_url

    def visible_to(self, visitor: Visitor) -> list[Screen]:
        """Return the screens that the visitor may open."""
        return [entry for entry in self.screens if _may_open(visitor, entry)]

    def navigation(self, visitor: Visitor, path: str) -> list[NavigationGroup]:
        """Return the navigation as the visitor sees it on the screen of `path`."""
        shown = [entry for entry in self.visible_to(visitor) if entry.navigation is not None]
        here = _section(path, [entry.path for entry in shown])
        return [
            NavigationGroup(t(f"navigation.{group}"), [_link(entry, here) for entry in entries])
            for group, entries in groupby(shown, key=_group)
        ]


async def draw_screen(
    visit: Visit, template: str, *, status: int, problem: str | None, **values: Any
) -> Reply[Html]:
    """Return a screen as a page, with all headers of UI-04."""
    request, visitor = visit.request, visit.visitor
    table = request.use(ScreenTable)
    teams = await members.teams_of(request.use(asyncpg.Pool), visitor.person_id)
    return page(
        template,
        status=status,
        headers={**HEADERS, "content-security-policy": POLICY},
        visit=visit,
        visitor=visitor,
        form_token=visitor.form_token,
        kept=saved_form.kept(request, visitor),
        navigation=table.navigation(visitor, visit.path),
        title=t(visit.title),
        teams=[team for team in teams if team.team_id != visitor.team_id],
        problem_text=problem,
        notice_text=visit.notice() if problem is None else None,
        samples=samples_of(visit.calls, table.public_url),
        first_mail=first_mail(table.public_url),
        stylesheet=assets.address("dashboard.css"),
        script=assets.address("dashboard.js"),
        **values,
    )


def _may_open(visitor: Visitor, entry: Screen) -> bool:
    if entry.for_operators:
        return False
    return visitor.may(entry.right)


def _group(entry: Screen) -> str:
    return entry.navigation.group if entry.navigation else ""


def _section(path: str, paths: Iterable[str]) -> str:
    """The navigation's entry that a path belongs to: the longest one that begins it."""
    return max(
        (entry for entry in paths if path == entry or path.startswith(f"{entry}/")), key=len, default=""
    )


def _link(entry: Screen, here: str) -> NavigationLink:
    place = entry.navigation
    icon, keys = (place.icon, place.keys) if place else ("", "")
    return NavigationLink(entry.path, t(entry.title), icon, keys, entry.path == here)


def choices(values: Iterable[str], prefix: str) -> Mapping[str, str]:
    """Return the texts of these values, for a select field: `<prefix>.<value>`."""
    return {value: t(f"{prefix}.{value}") for value in values}
