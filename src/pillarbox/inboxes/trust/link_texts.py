"""Links of an HTML mail whose text shows another host than they lead to. Pure, and linear in the text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from typing import Final, NamedTuple

from pillarbox.domains.names import registrable
from pillarbox.mail.deception.invisible import without_unseen
from pillarbox.mail.deception.link_hosts import shown_host, web_host
from pillarbox.mail.html import limits

LONGEST_READ: Final = 128 * 1024
MOST_LINKS: Final = 200
LONGEST_TEXT: Final = 300
LONGEST_CONTENT: Final = 4096
"""Characters in which the end of a link is looked for."""

_BEHIND_NAME: Final = frozenset(" \t\n\f\r/")
_TAG: Final = re.compile(r"<[^<>]*>")


class DisguisedLink(NamedTuple):
    """The host that a link shows, and the one that it leads to."""

    shown: str
    host: str


def disguised_links(html: str) -> list[DisguisedLink]:
    """Return the links whose text is an address of another registrable domain, each pair once."""
    found = dict[DisguisedLink, None]()
    for url, text in _links(html[:LONGEST_READ]):
        shown = shown_host(text)
        host = web_host(url) if shown else ""
        if host and registrable(shown) != registrable(host):
            found[DisguisedLink(shown, host)] = None
    return list(found)


def _links(html: str) -> Iterator[tuple[str, str]]:
    """Yield the URL and the text of each link."""
    lowered = html.lower()
    if len(lowered) != len(html):
        # A few letters become two when they are made small.
        html = lowered
    at, links = 0, 0
    while links < MOST_LINKS and (begin := lowered.find("<a", at)) >= 0:
        at = begin + 2
        if lowered[at : at + 1] not in _BEHIND_NAME:
            continue
        links += 1
        href, at = _href(html, at)
        at = html.find(">", at) + 1
        if not at:
            return
        end = lowered.find("</a", at, at + LONGEST_CONTENT)
        text = html[at : end if end >= 0 else at + LONGEST_TEXT]
        if href and "." in text:
            yield (
                unescape(href),
                " ".join(without_unseen(unescape(_TAG.sub("", text))).split())[:LONGEST_TEXT],
            )


def _href(html: str, index: int) -> tuple[str | None, int]:
    """Return the target of a link, and where its attributes end. Of several the first counts."""
    href = None
    for _ in range(limits.MOST_ATTRIBUTES):
        attribute = limits.ATTRIBUTE.match(html, index)
        if attribute is None:
            break
        index = attribute.end()
        if href is None and attribute[1].lower() == "href":
            href = attribute[2] or attribute[3] or attribute[4] or ""
    return href, index
