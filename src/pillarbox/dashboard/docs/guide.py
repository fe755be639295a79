"""Pages of the guide: which there are, in which order, and what each says."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Final, NamedTuple

from pillarbox.dashboard.docs.markdown_pages import DocLink, MarkdownPage, rendered, without_comments

HERE: Final = "/docs/guide"
IMAGES: Final = "/docs/images"
BROWSER: Final = "/docs/browser"
FOR_BROWSERS: Final = frozenset(("unsubscribe",))
"""Pages of the contract about pages for browsers."""
FIRST: Final = "index"
OTHERS: Final = "more"

GROUPS: Final[Mapping[str, tuple[str, ...]]] = {
    "begin": (FIRST, "demo", "dashboard", "capture"),
    "sending": (
        *("domains", "smtp", "templates", "delivery", "bounces", "suppressions", "finding-mail"),
        *("tracking", "unsubscribing"),
    ),
    "audience": ("audience", "broadcasts", "events", "automations"),
    "receiving": ("receiving", "inboxes"),
    "programs": ("webhooks", "oauth", "metrics", "logs", "quotas"),
    "people": ("people", "teams"),
    "operation": (
        *("production", "settings", "tls", "monitoring", "queue-and-retention", "retention", "backup"),
        *("upgrade", "scale-out"),
    ),
}
"""The order of the pages by the groups of the navigation. Pages that no group names come last."""

_TITLE = re.compile(r"^#\s+(.+)$", re.MULTILINE)
_EXTERNAL = re.compile(r"(?:https?|mailto):", re.IGNORECASE)
_LINK = re.compile(r"(!?\[[^\]\n]*\])\(([^()\s]+)\)")
_PICTURE = re.compile(r"[\w-]+\.(?:png|svg|jpg|webp)")
PICTURE_MEDIA: Final = {
    "png": "image/png",
    "svg": "image/svg+xml",
    "jpg": "image/jpeg",
    "webp": "image/webp",
}


class GuideLink(NamedTuple):
    """One page in a list: its name and title."""

    name: str
    title: str

    @property
    def path(self) -> str:
        """The address of the page."""
        return path_of(self.name)


@cache
def sources() -> Mapping[str, str]:
    """Return the Markdown of every page by its name."""
    folder = resources.files("pillarbox.dashboard.docs").joinpath("guide")
    names = sorted(file.name for file in folder.iterdir() if file.name.endswith(".md"))
    return {name.removesuffix(".md"): folder.joinpath(name).read_text(encoding="utf-8") for name in names}


@cache
def groups() -> Sequence[tuple[str, Sequence[GuideLink]]]:
    """Return the pages in the order of the guide, by their groups."""
    known = {name for names in GROUPS.values() for name in names}
    others = tuple(name for name in sources() if name not in known)
    listed = {**GROUPS, OTHERS: others}
    return [
        (group, [GuideLink(name, title_of(name)) for name in names if name in sources()])
        for group, names in listed.items()
        if names
    ]


def ordered() -> list[GuideLink]:
    """Return all pages in the order of the guide."""
    return [link for _, links in groups() for link in links]


def neighbors(name: str) -> tuple[GuideLink | None, GuideLink | None]:
    """Return the page before this one and the page after it."""
    links = ordered()
    index = [link.name for link in links].index(name)
    return (
        links[index - 1] if index else None,
        links[index + 1] if index + 1 < len(links) else None,
    )


def title_of(name: str) -> str:
    """Return the title of a page."""
    title = _TITLE.search(without_comments(sources()[name]))
    return title[1].replace("`", "").strip() if title else name


def path_of(name: str) -> str:
    """Return the address of a page."""
    return f"{HERE}/{name}"


@cache
def page_of(name: str) -> MarkdownPage:
    """Return a page as HTML."""
    return rendered(sources()[name], link_target)


def markdown_of(name: str) -> str:
    """Return a page as Markdown whose links lead to the Markdown of other pages."""
    return _LINK.sub(_markdown_link, without_comments(sources()[name]))


@cache
def pictures() -> frozenset[str]:
    """Return the names of the guide's pictures."""
    folder = resources.files("pillarbox.dashboard.docs").joinpath("images")
    return frozenset(file.name for file in folder.iterdir() if _PICTURE.fullmatch(file.name))


def picture(name: str) -> bytes:
    """Return a picture of the guide."""
    return resources.files("pillarbox.dashboard.docs").joinpath("images", name).read_bytes()


def link_target(href: str) -> DocLink | None:
    """Return what a page of the guide links to; None where it is not here."""
    if href.startswith("#") or _EXTERNAL.match(href):
        return DocLink(href)
    path, _, anchor = href.partition("#")
    place = posixpath.normpath(posixpath.join("docs/guide", path))
    folder, _, file = place.rpartition("/")
    suffix = f"#{anchor}" if anchor else ""
    name = file.removesuffix(".md")
    if folder == "docs/guide" and name in sources():
        return DocLink(f"{path_of(name)}{suffix}", title_of(name))
    if folder == "docs/images" and file in pictures():
        return DocLink(f"{IMAGES}/{file}")
    if folder == "docs/contract":
        return DocLink(f"{BROWSER if name in FOR_BROWSERS else '/docs'}#{name}", name)
    return None


def texts() -> Iterator[tuple[str, MarkdownPage]]:
    """Yield every page with its name, for the search."""
    for link in ordered():
        yield link.name, page_of(link.name)


def _markdown_link(written: re.Match[str]) -> str:
    text, href = written[1], written[2]
    link = link_target(href)
    if link is None:
        return text[1:-1] if text.startswith("[") else ""
    target = link.address
    if target.startswith(f"{HERE}/"):
        path, hash_, anchor = target.partition("#")
        target = f"{path}.md{hash_}{anchor}"
    return f"{text}({target})"
