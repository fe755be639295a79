"""The table of screens: which page, where it stands in the navigation, and who may see it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final, NamedTuple

from pillarbox.dashboard.texts import t
from pillarbox.people.roles import Right
from pillarbox.people.visitors import Visitor

ATTRIBUTE: Final = "__screens__"
OVERVIEW: Final = "/dashboard"
GROUPS: Final = ("email", "audience", "inboxes", "team", "installation")
"""The parts of the navigation, in its order; each has a heading `navigation.<group>`."""


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
        self._patterns = [re.sub(r"{\w+}", "[^/]+", screen.path) for screen in screens]

    def leads_to(self, path: str) -> bool:
        """Return whether there is a screen at this path."""
        return any(re.fullmatch(pattern, path) for pattern in self._patterns)

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


def _may_open(visitor: Visitor, entry: Screen) -> bool:
    if entry.for_operators:
        return visitor.is_operator
    return visitor.may(entry.right)


def _group(entry: Screen) -> str:
    return entry.navigation.group if entry.navigation else ""


def _section(path: str, paths: Sequence[str]) -> str:
    """Return the navigation's entry that a path belongs to: the longest one that begins it.

    The overview is an entry of its own, not the beginning of all others.
    """
    begun = (entry for entry in paths if entry != OVERVIEW and path.startswith(f"{entry}/"))
    return path if path in paths else max(begun, key=len, default="")


def _link(entry: Screen, here: str) -> NavigationLink:
    place = entry.navigation
    icon, keys = (place.icon, place.keys) if place else ("", "")
    return NavigationLink(
        path=entry.path, text=t(entry.title), icon=icon, keys=keys, is_here=entry.path == here
    )
