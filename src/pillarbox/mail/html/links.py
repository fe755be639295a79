"""Links of an HTML mail, and the place of a picture that is seen when it is opened (emails.md 8).

The mail is read by its tags, once from left to right, as HTML 13.2.5 reads them, and cut where the `href` of
an `<a>` or `<area>` stands. Nothing else is touched: what is cut and joined again has the same characters. No
tree is built, the work is linear, and no text makes it raise.

A link is left out where it or its author says so (`data-no-track`, or `data-track="off"`), and in comments,
scripts, styles, and pictures made of tags (`<svg>`, `<math>`). So are the links behind the first
`MOST_LINKS`: a short link becomes a long one, and each recipient's mail is made for itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

from pillarbox.mail.html.attribute_values import decoded, encoded
from pillarbox.mail.html.limits import ATTRIBUTE, COMMENT_END, TAG

MOST_LINKS = 10_000
MOST_TAGS = 100_000
"""Tags and comments of the kinds that are looked at; the document is not read behind them."""

LONGEST_HREF = 64 * 1024
"""Characters as they are written."""

_BLANK = "[ \\t\\n\\f\\r]"
_REST = (
    r"(?>(?:[ \t\n\f\r/]*+[^ \t\n\f\r/>][^ \t\n\f\r/>=]*+"
    rf"(?:{_BLANK}*+={_BLANK}*+(?:\"[^\"]*+\"|'[^']*+'|(?![\"'])[^ \t\n\f\r>]*+)|(?!{_BLANK}*+=)))*)"
    r"[ \t\n\f\r/]*+>"
)
"""The rest of a tag behind its name. A quote that is never closed ends the document."""
_RAW = ("script", "style", "title", "textarea", "iframe", "noembed", "noframes", "xmp")
_FOREIGN = ("svg", "math")
_READ = "|".join(("a", "area", "plaintext", *_RAW, *_FOREIGN))
_SKIPPED = re.compile(
    # Text, a `<` that begins nothing, and a whole tag that is none of those that are looked at.
    rf"(?>(?:[^<]++|<(?![A-Za-z!?/])|</(?![A-Za-z])[^>]*+>"
    rf"|<(?!(?:{_READ}|/body)(?:{_BLANK}|[/>]))/?[A-Za-z][^ \t\n\f\r/>]*+{_REST}){{0,256}})",
    re.IGNORECASE | re.ASCII,
)
_TAG_REST = re.compile(_REST)
_ENDS = {
    name: re.compile(rf"</{name}(?=[ \t\n\f\r/>])", re.IGNORECASE | re.ASCII) for name in (*_RAW, *_FOREIGN)
}
_AROUND_URL = "".join(map(chr, range(0x21)))
_NOT_IN_URL = re.compile(r"[\t\n\r]+")
_WEB = re.compile(r"https?://[^/\\?#]", re.IGNORECASE)


class Tracker(Protocol):
    """Replaces the links in a mail to one recipient."""

    def link(self, url: str, index: int) -> str | None:
        """Return where the link of this number leads now; None where it stays as it is."""
        ...

    def pixel(self) -> str | None:
        """Return the picture that is seen when the mail is opened; None where that is not asked."""
        ...


class HtmlPiece(NamedTuple):
    """A piece of the HTML as it is written. `is_href`: it is the value of an `href`, without its quotes."""

    text: str
    is_href: bool = False


class SplitHtml(NamedTuple):
    """The HTML in pieces: all of them joined are it. The picture belongs between the two lists."""

    before: Sequence[HtmlPiece]
    after: Sequence[HtmlPiece]


def cut(html: str) -> SplitHtml:
    """Return the HTML, cut at its links and before the end of its body."""
    parts: list[HtmlPiece] = []
    at, before = 0, -1
    for start, end in _spans(html):
        parts.append(HtmlPiece(html[at:start]))
        if start == end:
            before, at = len(parts), start
        else:
            parts.append(HtmlPiece(html[start:end], is_href=True))
            at = end
    parts.append(HtmlPiece(html[at:]))
    return SplitHtml(parts, []) if before < 0 else SplitHtml(parts[:before], parts[before:])


def href(raw: str, tracker: Tracker, index: int) -> str:
    """Return the replacement for the value of an `href`, as it is written in HTML."""
    url = web_url(raw)
    link = tracker.link(url, index) if url is not None else None
    return raw if link is None else encoded(link)


def web_url(raw: str) -> str | None:
    """Return where the value of an `href` leads, if that is a place in the web: what a browser makes of it
    before it reads it as a URL (URL standard 4.4)."""
    if len(raw) > LONGEST_HREF:
        return None
    url = _NOT_IN_URL.sub("", decoded(raw).strip(_AROUND_URL))
    return url if _WEB.match(url) else None


def picture(tracker: Tracker) -> str:
    """Return the tag of the picture; "" where there is none."""
    url = tracker.pixel()
    if url is None:
        return ""
    return f'<img src="{encoded(url)}" width="1" height="1" alt="" style="border:0;width:1px;height:1px">'


def tracked(html: str, tracker: Tracker) -> str:
    """Return the HTML of one recipient's mail, with its own links and picture."""
    before, after = cut(html)
    index = -1
    out: list[str] = []
    for place, parts in enumerate((before, after)):
        if place == 1:
            out.append(picture(tracker))
        for part in parts:
            index += part.is_href
            out.append(href(part.text, tracker, index) if part.is_href else part.text)
    return "".join(out)


def _spans(html: str) -> Iterator[tuple[int, int]]:
    """Return where links stand, in order; and the place before the last end of a body, as a span of
    no length."""
    spans: list[tuple[int, int]] = []
    never_closed: set[str] = set()
    body_end = -1
    at = looked_at = 0
    while at < len(html) and looked_at < MOST_TAGS:
        skipped = _SKIPPED.match(html, at)
        if skipped is not None and skipped.end() > at:
            at = skipped.end()
            continue
        looked_at += 1
        found = TAG.match(html, at)
        if found is None:
            break
        comment, declaration, slash, name = found.groups()
        if comment:
            end = COMMENT_END.search(html, found.end() - 2)
            at = end.end() if end else len(html)
            continue
        if declaration:
            at = html.find(">", found.end()) + 1 or len(html)
            continue
        rest = _TAG_REST.match(html, found.end())
        if rest is None:
            break
        name = name.lower()
        if slash:
            body_end = at if name == "body" else body_end
        elif name in ("a", "area"):
            span = _href(html, found.end(), rest.end()) if len(spans) < MOST_LINKS else None
            if span is not None:
                spans.append(span)
        elif name == "plaintext":
            break
        elif name not in never_closed and (name in _RAW or html[rest.end() - 2] != "/"):
            closed = _ENDS[name].search(html, rest.end())
            if closed is not None:
                at = closed.start()
                continue
            if name in _RAW:
                break
            never_closed.add(name)
        at = rest.end()
    if body_end >= 0:
        spans.append((body_end, body_end))
        spans.sort()
    return iter(spans)


def _href(html: str, index: int, end: int) -> tuple[int, int] | None:
    """Return where the value of the tag's `href` stands; None where it has none, or says that it is
    left alone."""
    place: tuple[int, int] | None = None
    names: set[str] = set()
    while (found := ATTRIBUTE.match(html, index, end)) is not None:
        index = found.end()
        name = found[1].lower()
        if name in names:
            continue
        names.add(name)
        group = found.lastindex or 0
        if name == "href" and group > 1:
            place = found.span(group)
        elif name == "data-no-track" or (
            name == "data-track" and group > 1 and decoded(found[group]).strip().lower() == "off"
        ):
            return None
    return place if place is not None and place[1] > place[0] else None
