"""The links of a mail that can be asked for: http and https, without a placeholder in the host."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from selectolax.lexbor import LexborHTMLParser

from pillarbox.kernel.network.web_address import BadUrl, parse_url
from pillarbox.mail.html.nesting import AllowedElements, nested
from pillarbox.mail.placeholders.parsing import parse

MOST_LINKS: Final = 100
"""Different links of one mail that are checked."""

LONGEST_URL: Final = 2048
LINKS: Final = AllowedElements(
    {"a"},
    {"a": {"href"}},
    {
        *("script", "style", "title", "template", "noscript", "iframe", "object", "svg", "math", "textarea"),
        "select",
    },
)
_HOST: Final = re.compile(r"https?://[^/?#]+[/?#]", re.IGNORECASE)
_IN_TEXT: Final = re.compile(r"\bhttps?://[^\s<>\"'`\\^|]{1,2048}", re.IGNORECASE)
_BEHIND: Final = ".,;:!?*_)]'"
"""Characters that end a sentence around a link of a text more often than they end the link."""


class MailLinks(NamedTuple):
    """The different links of a mail in its order. `has_more`: it has others, beyond the bound."""

    urls: Sequence[str]
    has_more: bool


class MailPart(NamedTuple):
    """HTML and text of a mail, and what stands for placeholders that have no fallback of their own."""

    html: str
    text: str
    fallbacks: Mapping[str, str]


def links_of(parts: Sequence[MailPart]) -> MailLinks:
    """Return the links of the bodies of a mail, or of its variants. It takes time in proportion to them."""
    found: dict[str, None] = {}
    for part in parts:
        for written in _written(part):
            url = _asked(written, part.fallbacks)
            if url is None or url in found:
                continue
            if len(found) == MOST_LINKS:
                return MailLinks(list(found), has_more=True)
            found[url] = None
    return MailLinks(list(found), has_more=False)


def _written(part: MailPart) -> Iterator[str]:
    if part.html:
        for node in LexborHTMLParser(nested(part.html, LINKS).body).css("a[href]"):
            yield node.attributes.get("href") or ""
    for link in _IN_TEXT.finditer(part.text):
        yield link[0].rstrip(_BEHIND)


def _asked(written: str, fallbacks: Mapping[str, str]) -> str | None:
    """Return the URL as it is asked for; None for what is none, or is another one for each contact."""
    filled = _filled(written.strip(), fallbacks)
    if filled is None or "{{" in filled:
        return None
    try:
        url = str(parse_url(filled))
    except BadUrl:
        return None
    return url if len(url) <= LONGEST_URL else None


def _filled(written: str, fallbacks: Mapping[str, str]) -> str | None:
    """Return the link with the fallbacks of its placeholders. None where one stands in the host, or in the
    path without a fallback: such an address is there only for a contact."""
    parsed = parse(written)
    if not parsed.placeholders:
        return written
    if not _HOST.match(parsed.texts[0]):
        return None
    url = parsed.texts[0]
    for placeholder, behind in zip(parsed.placeholders, parsed.texts[1:], strict=True):
        value = placeholder.fallback or fallbacks.get(placeholder.name, "")
        if not value and not ("?" in url or "#" in url):
            return None
        url += value + behind
    return url
