"""The plain text of an HTML mail (templates.md 7): what a reader would see, without a screen.

Blocks stand on lines of their own, and a blank line follows paragraphs, headings, lists and tables. List
items begin with `* ` or their number, and a blank separates cells. Links keep their target as `text (url)`,
images leave their alternative text. Lines are never wrapped. Scripts, styles, the head and what the author
hid (preheaders among it, MSG-14) are dropped. Time and memory are linear in the length of the HTML, and long
texts are read in pieces, so that other threads may run in between.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from selectolax.lexbor import LexborHTMLParser, LexborNode

from pillarbox.mail.html import limits
from pillarbox.mail.html.hidden_text import HiddenText

BREAKS = {
    **dict.fromkeys(
        (
            *("address", "article", "aside", "blockquote", "body", "caption", "center", "dd", "details"),
            *("dialog", "dir", "div", "dt", "fieldset", "figcaption", "figure", "footer", "form", "header"),
            *("hgroup", "hr", "legend", "li", "main", "menu", "nav", "pre", "section", "summary", "tr"),
        ),
        1,
    ),
    **dict.fromkeys(("dl", "h1", "h2", "h3", "h4", "h5", "h6", "ol", "p", "table", "ul"), 2),
}
"""Line ends behind an element; two of them make a blank line. Before each of them is one."""

MOST_BREAKS = 2
DEEPEST_INDENT = 8
RULE = "-" * 10
LONGEST_TEXT = 10 * 1024 * 1024
"""Characters; only text that is indented line by line gets longer than its HTML."""
PIECE = 65_536
"""Characters that are read at once."""
LONGEST_STYLE = 4096
"""So much of a `style` is read."""

QUOTATIONS = frozenset(("gmail_quote", "yahoo_quoted"))
"""Classes of elements in which mail programs put what they quote."""

QUOTATION_HEADS = frozenset(("moz-cite-prefix", "outlookmessageheader", "divrplyfwdmsg"))
"""Classes and ids, in lower case, of the elements behind which mail programs put what they quote."""

Instead = Callable[[LexborNode], str | None]
HostOf = Callable[[str], str]
"""Returns the host that is written for the target of a link; "" where only its text is."""

LINK_BEGIN = "\x04"
LINK_TARGET = "\x05"
LINK_END = "\x06"
"""Marks around the text of a link, and around its host behind it, where hosts are asked for."""

_NO_LINK_MARKS = dict.fromkeys(map(ord, LINK_BEGIN + LINK_TARGET + LINK_END))

_BLANKS = re.compile(r"[ \t\n\f\r\xa0]+")
_NOT_IN_URL = re.compile(r"[\x00-\x20\x7f]+")
_NOT_DIGITS = re.compile(r"[^0-9+]+")
_BLANK = " \t\n\f\r\xa0"
_EMPTY_LINES = re.compile(r"\n[ \t\n]*\n")
_LINES_BEFORE = re.compile(r"(?:[ \t\n]*\n)?")
_LINE_BEGINS = re.compile(r"\n(?=[^\n])")
_INVISIBLE = re.compile("[\x00\xad\u034f\u200b-\u200d\u2060\ufeff]")
_FILLERS = " \u200e\u200f"
_PIXEL = frozenset(("0", "1"))
_ZERO = r"(?:0+(?:\.0*)?|\.0+)"
_HIDING = re.compile(
    rf"(?:^|;)\s*(?:display\s*:\s*none|visibility\s*:\s*hidden|opacity\s*:\s*{_ZERO}|"
    rf"max-height\s*:\s*{_ZERO}(?:px|em|pt|%)?)\s*(?:!\s*important\s*)?(?:;|$)",
    re.IGNORECASE | re.ASCII,
)


def text_of(
    html: str,
    *,
    quotations: bool = True,
    instead: Instead | None = None,
    hidden: HiddenText | None = None,
    host_of: HostOf | None = None,
) -> str:
    """Return the text of the document, without blank lines at its ends and never with two in a row; on demand
    without what stands in `<blockquote>` or is otherwise marked as a quotation by the mail programs.
    `instead` is asked for each element what stands on a line of its own for it; None: it is read. With
    `hidden`, what is known of this document, only text that readers see is written. With `host_of` links are
    written with their marks (`LINK_BEGIN`) and the host alone, and images leave no alternative text."""
    if not limits.is_harmless(html):
        html = limits.simplified(html, bare=limits.STAND_IN)
        if hidden is not None:
            hidden.is_simplified = True
    tree = LexborHTMLParser(html)
    body = tree.body
    if body is None:
        return ""
    text = _Text(host_of)
    if hidden is None or hidden.enter("body", body.attributes):
        _walk(body, text, quotations=quotations, instead=instead, hidden=hidden)
    return text.written()


def _walk(
    body: LexborNode, text: _Text, *, quotations: bool, instead: Instead | None, hidden: HiddenText | None
) -> None:
    """Tell `text` of every visible node below `body` in document order; without recursion."""
    unread = limits.UNREAD if quotations else limits.UNREAD | {"blockquote"}
    open_elements: list[tuple[LexborNode, str]] = []
    node = body.child
    while True:
        while node is None:
            if not open_elements:
                return
            closed, tag = open_elements.pop()
            text.leave(tag)
            if hidden is not None:
                hidden.leave()
            node = closed.next
        if node.is_text_node:
            if hidden is None or hidden.is_text_seen:
                text.say(node.text_content or "")
        elif node.is_element_node:
            tag = node.tag or ""
            attributes = node.attributes
            marks = frozenset() if quotations else marks_of(attributes)
            said = instead(node) if instead else None
            if said is not None:
                text.put_line(said)
                node = node.next
                continue
            if not marks.isdisjoint(QUOTATION_HEADS):
                return
            is_read = tag not in unread and marks.isdisjoint(QUOTATIONS) and not _is_hidden(attributes)
            if is_read and (hidden is None or hidden.enter(tag, attributes)):
                text.enter(tag, attributes)
                open_elements.append((node, tag))
                node = node.child
                continue
        node = node.next


def marks_of(attributes: dict[str, str | None]) -> frozenset[str]:
    """Return the classes and the id of an element, in lower case."""
    return frozenset(f"{attributes.get('class') or ''} {attributes.get('id') or ''}".lower().split())


def _is_hidden(attributes: dict[str, str | None]) -> bool:
    if not attributes:
        return False
    return "hidden" in attributes or bool(_HIDING.search((attributes.get("style") or "")[:LONGEST_STYLE]))


def _is_pixel(attributes: dict[str, str | None]) -> bool:
    """Return whether an image is so small that it only counts who sees it."""
    return attributes.get("width") in _PIXEL and attributes.get("height") in _PIXEL


class _Text:
    """The text so far, and what stands between it and the next word: line ends, or a blank."""

    def __init__(self, host_of: HostOf | None = None) -> None:
        self._host_of = host_of
        self._begun_links = ""
        self._out: list[str] = []
        self._breaks = 0
        self._between = ""
        self._marker = ""
        self._lists: list[int | None] = []
        self._links: list[tuple[str, list[str]]] = []
        self._pre = 0
        self._length = 0

    def written(self) -> str:
        return "".join(self._out)

    def say(self, raw: str) -> None:
        """Take a text of the document. Where it is cut makes no difference, but between CR and LF."""
        say = self._say_lines if self._pre else self._say_words
        if self._host_of is not None:
            raw = raw.translate(_NO_LINK_MARKS)
        if len(raw) <= PIECE:
            say(raw)
            return
        at = 0
        while at < len(raw):
            end = at + PIECE
            if raw[end - 1 : end + 1] == "\r\n":
                end += 1
            say(raw[at:end])
            at = end

    def _say_words(self, raw: str) -> None:
        if limits.STAND_IN in raw:
            raw = raw.replace(limits.STAND_IN, "<")
        if raw.isascii():
            said = " ".join(raw.split())
        else:
            raw = _INVISIBLE.sub("", raw)
            said = _BLANKS.sub(" ", raw).strip(" ")
            # Preheaders are often stretched with marks that show nothing.
            if not said.strip(_FILLERS):
                said = ""
        if not said:
            if raw and not self._between:
                self._between = " "
            return
        if not self._between and raw[0] in _BLANK:
            self._between = " "
        self._put(said)
        if raw[-1] in _BLANK:
            self._between = " "

    def put_line(self, line: str) -> None:
        """Write a line of its own; none for the empty text, which only ends the line."""
        self._break(1)
        if line:
            self._put(line)
            self._break(1)

    def enter(self, tag: str, attributes: dict[str, str | None]) -> None:
        if tag in BREAKS:
            self._break(1)
        if tag == "a":
            self._begin_link(attributes.get("href") or "")
        elif tag == "img":
            if self._host_of is None and not _is_pixel(attributes):
                self.say(f" {attributes.get('alt') or ''} ")
        elif tag == "br":
            self._between = ""
            self._breaks = min(self._breaks + 1, MOST_BREAKS)
        elif tag == "hr":
            self._put(RULE)
        elif tag in ("ul", "ol"):
            self._lists.append(1 if tag == "ol" else None)
        elif tag == "li":
            self._begin_item()
        elif tag in ("td", "th"):
            # The first cell of a row still has the row's line end before it.
            self._between = " " if self._out and not self._breaks else ""
        elif tag == "pre":
            self._pre += 1

    def leave(self, tag: str) -> None:
        if tag == "a" and self._links:
            self._end_link(*self._links.pop())
        elif tag in ("ul", "ol") and self._lists:
            self._lists.pop()
        elif tag == "li":
            self._marker = ""
        elif tag == "pre":
            self._pre -= 1
        if tag in BREAKS:
            self._break(BREAKS[tag])

    def _break(self, count: int) -> None:
        # The first block of a list item begins on the line of its marker.
        if not self._marker:
            self._breaks = max(self._breaks, 1 if self._lists else count)
            self._between = ""

    def _begin_item(self) -> None:
        number = self._lists[-1] if self._lists else None
        if number is None:
            self._marker = "* "
        else:
            self._marker = f"{number}. "
            self._lists[-1] = number + 1

    def _put(self, words: str) -> None:
        self._length += len(words)
        if self._length > LONGEST_TEXT:
            return
        level = min(len(self._lists), DEEPEST_INDENT)
        if self._breaks or not self._out:
            start = "\n" * self._breaks if self._out else ""
            indent = "  " * (level - 1 if self._marker and level else level)
            self._out.append(f"{start}{indent}{self._marker}")
        elif self._between:
            self._out.append(self._between)
        self._out.append(self._begun_links + words)
        self._begun_links = ""
        if self._links:
            self._links[-1][1].append(words)
        self._breaks, self._between, self._marker = 0, "", ""

    def _say_lines(self, raw: str) -> None:
        """Take a text whose lines stand as they are, but for empty ones beyond the first between
        two others."""
        raw = raw.replace("\r\n", "\n").replace("\r", "\n").replace(limits.STAND_IN, "<")
        shown = _INVISIBLE.sub("", raw).replace("\xa0", " ")
        first = _LINES_BEFORE.match(shown)
        begin = first.end() if first else 0
        self._add_line_ends(shown.count("\n", 0, begin))
        rest = shown[begin:]
        visible = len(rest.rstrip(" \t\n"))
        if not visible:
            if not self._breaks:
                self._between += rest
            return
        end = rest.find("\n", visible)
        said = _EMPTY_LINES.sub("\n\n", rest if end < 0 else rest[:end])
        if self._lists:
            indent = "  " * min(len(self._lists), DEEPEST_INDENT)
            said = _LINE_BEGINS.sub(f"\n{indent}", said)
        self._put(said)
        if end >= 0:
            self._add_line_ends(rest.count("\n", end))

    def _add_line_ends(self, count: int) -> None:
        if count:
            self._breaks = min(self._breaks + count, MOST_BREAKS)
            self._between = ""

    def _begin_link(self, href: str) -> None:
        if self._host_of is not None:
            href = self._host_of(href)
            self._begun_links += LINK_BEGIN if href else ""
        self._links.append((href, []))

    def _end_link(self, href: str, words: list[str]) -> None:
        if self._host_of is not None:
            if href:
                if self._begun_links:
                    self._put("link")
                self._out.append(f"{LINK_TARGET}{href}{LINK_END}")
            return
        label = " ".join(words)
        target = _target(href, label)
        if not target:
            return
        if not label:
            self.say(f" {target} ")
        else:
            self._out.append(f" ({target})")


def _target(href: str, label: str) -> str:
    """Return the address to write behind the label of a link; "" when the label says it already."""
    url = _NOT_IN_URL.sub("", href)
    scheme = url.partition(":")[0].lower()
    if scheme in ("http", "https") or url.startswith("{{"):
        return "" if label.rstrip("/") == url.rstrip("/") else url
    if scheme == "tel":
        number = url[len("tel:") :]
        return "" if _NOT_DIGITS.sub("", number) in _NOT_DIGITS.sub("", label) else number
    return ""
