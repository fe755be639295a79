"""Links of an HTML mail whose text shows another host than they lead to. Pure, and linear in the text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from pillarbox.domains.names import registrable

LONGEST_READ: Final = 128 * 1024
MOST_LINKS: Final = 200
LONGEST_TEXT: Final = 300
LONGEST_TAG: Final = 4096

_HREF: Final = re.compile(r"[\s\"'/]href\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s>]+))", re.IGNORECASE)
_TAG: Final = re.compile(r"<[^<>]*>")
_SITE: Final = re.compile(
    r"(?:https?://)?(?:[^@/\s]{1,64}@)?((?:[\w-]{1,63}\.){1,8}[a-z]{2,24})(?=[/:?#\s]|$)", re.IGNORECASE
)
_BARE_FILE: Final = re.compile(
    r"\.(?:pdf|docx?|xlsx?|zip|html?|png|jpe?g|txt|csv|js|py|md|net|io)$", re.IGNORECASE
)


class DisguisedLink(NamedTuple):
    """The host that a link shows, and the one that it leads to."""

    shown: str
    host: str


def disguised_links(html: str) -> list[DisguisedLink]:
    """Return the links whose text is an address of another registrable domain, each pair once."""
    found = dict[DisguisedLink, None]()
    for url, text in _links(html[:LONGEST_READ]):
        named = _SITE.match(text)
        host = _host(url) if named is not None else ""
        if named is None or not host:
            continue
        shown = named[1].lower()
        is_address = (
            text.lower().startswith("http") or shown.startswith("www.") or not _BARE_FILE.search(shown)
        )
        if is_address and registrable(shown) != registrable(host):
            found[DisguisedLink(shown, host)] = None
    return list(found)


def _links(html: str) -> Iterator[tuple[str, str]]:
    """Yield the URL and the text of each link."""
    lowered, at = html.lower(), 0
    if len(lowered) != len(html):
        # A few letters become two when they are made small.
        html = lowered
    for _ in range(MOST_LINKS):
        at = lowered.find("<a", at)
        if at < 0:
            return
        close = lowered.find(">", at, at + LONGEST_TAG)
        if close < 0 or not lowered[at + 2 : at + 3].isspace():
            at += 2
            continue
        href = _HREF.search(html, at + 2, close + 1)
        end = lowered.find("</a", close, close + LONGEST_TAG)
        text = html[close + 1 : end if end >= 0 else close + 1 + LONGEST_TEXT]
        if href is not None and "." in text:
            shown = " ".join(unescape(_TAG.sub("", text)).split())[:LONGEST_TEXT]
            yield unescape(href[1] or href[2] or href[3] or "").strip(), shown
        at = close + 1


def _host(url: str) -> str:
    """Return the host of a link to the web, in lower case; "" of any other."""
    if not url[:8].lower().startswith(("http://", "https://")):
        return ""
    try:
        return (urlsplit(url).hostname or "").rstrip(".").lower()
    except ValueError:
        return ""
