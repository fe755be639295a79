"""HTML that authors write themselves: cleaned where it is a block, judged where it is a whole mail."""

from __future__ import annotations

import re
from html import unescape
from typing import Final

import nh3

from pillarbox.documents.kept_placeholders import KeptPlaceholders
from pillarbox.mail.html.limits import ATTRIBUTE, next_tag
from pillarbox.mail.html.nesting import AllowedElements, nested

TAGS: Final = set(nh3.ALLOWED_TAGS) - {"area", "map", "data", "rtc"} | {"font", "big", "section", "tfoot"}
EMPTIED: Final = {
    *("script", "style", "title", "template", "noscript", "iframe", "object", "embed", "svg", "math"),
    *("textarea", "select", "button", "audio", "video", "canvas", "xmp", "noembed", "noframes"),
}
_ANYWHERE: Final = {"style", "class", "id", "dir", "lang", "title", "align", "valign", "width", "height"}
ATTRIBUTES: Final = {
    "*": _ANYWHERE | {"bgcolor", "role"},
    "a": {"href", "name", "target"},
    "img": {"src", "alt", "border"},
    "table": {"border", "cellpadding", "cellspacing"},
    "td": {"colspan", "rowspan"},
    "th": {"colspan", "rowspan", "scope"},
    "ol": {"start", "type"},
    "font": {"color", "face", "size"},
}
_ALLOWED: Final = AllowedElements(TAGS, ATTRIBUTES, EMPTIED)
_UNSAFE_STYLE: Final = re.compile(
    r"expression|javascript|vbscript|@import|-moz-binding|behavior", re.IGNORECASE
)
_SCRIPT_ADDRESS: Final = re.compile(r"(?:javascript|vbscript|data\s*:\s*text)", re.IGNORECASE)
_IGNORED: Final = re.compile(r"[\0-\x20\x7f]+")
LONGEST: Final = 2000
"""So much of an address is looked at."""
_WORDS: Final = frozenset(("alt", "title", "content", "aria-label"))
ACTIVE: Final = frozenset(("script", "iframe", "object", "embed", "applet", "base", "form"))
"""Elements that no mail may have."""


def cleaned(html: str, kept: KeptPlaceholders) -> str:
    """Return marked HTML without what a mail may not hold: scripts, frames, forms, script addresses."""

    def attribute(_: str, name: str, value: str) -> str | None:
        if name in ("href", "src"):
            return kept.link(value)
        if name == "style":
            return None if _UNSAFE_STYLE.search(value) or "\\" in value else value
        return value

    return nh3.clean(
        nested(html, _ALLOWED).body,
        tags=TAGS,
        clean_content_tags=EMPTIED,
        attributes=ATTRIBUTES,
        attribute_filter=attribute,
        url_schemes={"http", "https", "mailto", "tel"},
        link_rel=None,
    )


def active_part(html: str) -> str | None:
    """Return the first thing in HTML that could act, in a word: an element, an attribute, an address.

    None where there is none. What stands in comments is read too: old programs look into them. The text is
    read once.
    """
    place = 0
    while (tag := next_tag(html, place)) is not None:
        place = tag.end()
        name = (tag[4] or "").lower()
        if tag[3] or not name:
            continue
        if name in ACTIVE:
            return f"<{name}>"
        while (attribute := ATTRIBUTE.match(html, place)) is not None:
            place = attribute.end()
            key = attribute[1].lower()
            if key.startswith("on") and attribute[0].find("=") > 0:
                return key
            value = _IGNORED.sub("", unescape(attribute[2] or attribute[3] or attribute[4] or "")[:LONGEST])
            if _SCRIPT_ADDRESS.match(value) and key not in _WORDS:
                return "javascript:"
    return None
