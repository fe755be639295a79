"""HTML rewritten so that a tree builder has nothing to repair in it, and so needs linear time (TRAP-06).

By the rules of HTML a tree builder repairs what authors leave out. It walks the open elements at each tag,
and copies the formatting elements that are still open into each new block: a hundred kilobytes of `<b a0>`
and `<div>` become millions of nodes. `nested` applies these rules itself, reading the tags once from left to
right, and writes a document in which every element is closed where it ends: at most 256 elements deep, with
the attributes of an allow-list, each once, with cells in rows and rows in tables. Elements that are not on
the list lose their tags, and some of them their content. How much is read and written is bounded; what lies
beyond the bounds is left out, and `complete` says so.

Whatever it misreads is only misread: what it writes is cheap, and it is no sanitizer. It departs from HTML in
two places: what stands in a table outside of its cells gets a cell of its own instead of going in front of
the table. A formatting element that ends inside a block begun within it goes on to the end of that block.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from pillarbox.mail.html.limits import ATTRIBUTE, COMMENT_END, RAW, next_tag

DEEPEST = 256
LONGEST_READ = 1024 * 1024
LONGEST_WRITTEN = 2 * 1024 * 1024
MOST_TAGS = 30_000
MOST_REOPENED = 8
"""Formatting elements that are opened anew where a block cut them off."""
MOST_STYLE = 256 * 1024

VOID = frozenset(("br", "hr", "img", "wbr", "col"))
FORMATTING = frozenset(
    ("a", "b", "big", "code", "em", "font", "i", "s", "small", "strike", "strong", "tt", "u")
)
HEADINGS = frozenset(("h1", "h2", "h3", "h4", "h5", "h6"))
BLOCKS = HEADINGS | {
    *("address", "article", "aside", "blockquote", "center", "details", "div", "dl", "figcaption", "figure"),
    *("footer", "header", "hgroup", "main", "nav", "ol", "p", "pre", "section", "summary", "table", "ul"),
}
"""Elements whose start closes an open paragraph (HTML 13.2.6.4.7); `li`, `dd`, `dt` and `hr` do as well."""
SECTIONS = frozenset(("tbody", "thead", "tfoot"))
CELLS = frozenset(("td", "th"))
WALLS = CELLS | {"table", "caption"}
"""An end tag inside one of these closes nothing outside of it."""
OUTSIDE_CELLS = SECTIONS | {"table", "tr", "colgroup"}
TABULAR = SECTIONS | CELLS | {"tr", "caption", "colgroup", "col"}
SPECIAL = BLOCKS | TABULAR | {"dd", "dt", "li"}
"""Those of HTML's "special" elements that can be written."""
ITEMS: Mapping[str, frozenset[str]] = {
    "li": frozenset(("li",)),
    "dd": frozenset(("dd", "dt")),
    "dt": frozenset(("dd", "dt")),
}
RUBY = frozenset(("rt", "rp"))

_TEXT_IN_TABLE = re.compile(r"[^ \t\n\f\r]")
_ENDS: dict[str, re.Pattern[str]] = {}


@dataclass(frozen=True, slots=True)
class AllowedElements:
    """The allow-list of elements, of the attributes of each and of all (`*`), and the elements that lose
    their content with their tags."""

    tags: Collection[str]
    attributes: Mapping[str, Collection[str]]
    emptied: Collection[str]

    def attributes_of(self, tag: str) -> frozenset[str]:
        return frozenset((*self.attributes.get("*", ()), *self.attributes.get(tag, ())))


@dataclass(frozen=True, slots=True)
class NestedHtml:
    """The content of the body, the style sheets, and what stood in the tag of the body, as it was written."""

    body: str
    styles: tuple[str, ...]
    body_attributes: Mapping[str, str]
    complete: bool


def nested(html: str, allowed: AllowedElements) -> NestedHtml:
    """Return the document with its elements well nested."""
    return _Writer(html[:LONGEST_READ], allowed, len(html) <= LONGEST_READ).nested()


class _Writer:
    """One pass over the document; `_at` only ever grows.

    `_open` holds the open elements with their attributes, and with True those that have ended but contain a
    block that has not; `_amounts` says how many there are of each name. `_cut` holds the formatting elements
    that a block cut off, which are opened anew before the next text; each table cell has a list of its own.
    """

    def __init__(self, html: str, allowed: AllowedElements, complete: bool) -> None:
        self._html = html
        self._allowed = allowed
        self._attributes_of: dict[str, frozenset[str]] = {}
        self._at = 0
        self._out: list[str] = []
        self._remaining = LONGEST_WRITTEN
        self._open: list[tuple[str, str, bool]] = []
        self._amounts = dict.fromkeys((*allowed.tags, "tbody", "tr", "td", "colgroup"), 0)
        self._cut: list[list[tuple[str, str]]] = [[]]
        self._tags = 0
        self._never_closed: set[str] = set()
        self._styles: list[str] = []
        self._body: dict[str, str] | None = None
        self._complete = complete

    def nested(self) -> NestedHtml:
        while (found := next_tag(self._html, self._at)) is not None:
            self._text(self._html[self._at : found.start()])
            self._at = found.end()
            self._tags += 1
            if self._tags > MOST_TAGS or self._remaining <= 0:
                self._complete = False
                break
            self._markup(found)
        else:
            self._text(self._html[self._at :])
        while self._open:
            self._close()
        return NestedHtml("".join(self._out), tuple(self._styles), self._body or {}, self._complete)

    # Reading ------------------------------------------------------------------------------------------

    def _text(self, text: str) -> None:
        if not text:
            return
        if self._open and self._open[-1][0] in OUTSIDE_CELLS:
            if _TEXT_IN_TABLE.search(text) is None:
                return
            self._into_cell()
        self._reopen()
        self._write(text.replace("<", "&lt;"))

    def _markup(self, match: re.Match[str]) -> None:
        comment, declaration, slash, name = match.groups()
        if comment:
            end = COMMENT_END.search(self._html, match.end() - 2)
            self._at = end.end() if end else len(self._html)
        elif declaration:
            self._skip_past(">")
        elif slash:
            self._skip_past(">")
            self._end(name.lower())
        else:
            self._start(name.lower())

    def _start(self, name: str) -> None:
        attributes = self._read_attributes(name)
        if name == "body" and self._body is None:
            self._body = attributes
        elif name in self._allowed.emptied:
            self._skip(name)
        elif name in self._allowed.tags:
            written = "".join([f' {key}="{value}"' for key, value in attributes.items()])
            if name in TABULAR:
                self._start_in_table(name, written)
            else:
                self._start_in_body(name, written)

    def _read_attributes(self, tag: str) -> dict[str, str]:
        """Return the attributes of the start tag at hand that are kept; the first of a name counts."""
        wanted = self._attributes_of.get(tag)
        if wanted is None:
            wanted = self._attributes_of[tag] = self._allowed.attributes_of(tag)
        kept: dict[str, str] = {}
        while (found := ATTRIBUTE.match(self._html, self._at)) is not None:
            self._at = found.end()
            name = found[1].lower()
            if name in wanted and name not in kept:
                kept[name] = (found[2] or found[3] or found[4] or "").replace('"', "&quot;")
        self._skip_past(">")
        return kept

    def _skip_past(self, mark: str) -> None:
        at = self._html.find(mark, self._at)
        self._at = at + 1 if at >= 0 else len(self._html)

    def _skip(self, name: str) -> None:
        """Pass over the element; one that is never closed loses its tag only, unless it is raw text."""
        if name in self._never_closed:
            return
        start, end = self._at, _end_of(name).search(self._html, self._at)
        if end is not None:
            self._at = end.start()
        elif name in RAW:
            self._at = len(self._html)
        else:
            self._never_closed.add(name)
        if name == "style":
            self._styles.append(self._html[start : min(self._at, start + MOST_STYLE)])

    # Writing ------------------------------------------------------------------------------------------

    def _write(self, text: str) -> None:
        self._out.append(text)
        self._remaining -= len(text)

    def _open_element(self, name: str, attributes: str) -> None:
        self._write(f"<{name}{attributes}>")
        if name not in VOID:
            self._open.append((name, attributes, False))
            self._amounts[name] += 1
            if name in CELLS or name == "caption":
                self._cut.append([])

    def _close(self, *, is_cut: bool = False) -> None:
        """Close the innermost element; with `is_cut`, a formatting element goes on behind it."""
        name, attributes, has_ended = self._open.pop()
        self._amounts[name] -= 1
        self._write(f"</{name}>")
        if name in CELLS or name == "caption":
            self._cut.pop()
        elif is_cut and not has_ended and name in FORMATTING:
            cut = self._cut[-1]
            if len(cut) < MOST_REOPENED and (name, attributes) not in cut:
                cut.insert(0, (name, attributes))

    def _close_through(self, index: int) -> None:
        """Close the open elements from `index` on, and those around them that have ended already."""
        while len(self._open) > index:
            self._close(is_cut=True)
        while self._open and self._open[-1][2]:
            self._close()

    def _reopen(self) -> None:
        """Open what a block cut off."""
        cut = self._cut[-1]
        if not cut:
            return
        for name, attributes in cut:
            if len(self._open) < DEEPEST and (name != "a" or self._find({"a"}, WALLS) is None):
                self._open_element(name, attributes)
        cut.clear()

    def _find(self, names: Collection[str], walls: Collection[str]) -> int | None:
        """Return the innermost open element with one of these names, unless one of `walls` is in front
        of it."""
        amounts = self._amounts
        if any(amounts.get(name) for name in names):
            for at in range(len(self._open) - 1, -1, -1):
                name = self._open[at][0]
                if name in names:
                    return at
                if name in walls:
                    return None
        return None

    # The rules ----------------------------------------------------------------------------------------

    def _start_in_body(self, name: str, attributes: str) -> None:
        if self._open and self._open[-1][0] in OUTSIDE_CELLS:
            self._into_cell()
        if name in ITEMS:
            self._close_item(name)
        if name in BLOCKS or name in ITEMS or name == "hr":
            self._close_paragraph()
            while name in HEADINGS and self._open and self._open[-1][0] in HEADINGS:
                self._close_through(len(self._open) - 1)
        else:
            self._before_inline(name)
        # Above a table there is always room for its rows and cells.
        if name in VOID or len(self._open) + (4 if name == "table" else 0) < DEEPEST:
            self._open_element(name, attributes)
        elif name in SPECIAL:
            self._write("<br>")

    def _before_inline(self, name: str) -> None:
        if name == "a":
            self._cut[-1] = [cut for cut in self._cut[-1] if cut[0] != "a"]
            if (at := self._find({"a"}, WALLS)) is not None:
                self._end_formatting(at)
                # Where it could only be marked as ended, everything in it ends with it.
                if (at := self._find({"a"}, WALLS)) is not None:
                    self._close_through(at)
        elif name in RUBY and self._find({"ruby"}, WALLS) is not None:
            while self._open[-1][0] in RUBY or self._open[-1][0] in ("p", "li", "dd", "dt"):
                self._close_through(len(self._open) - 1)
        self._reopen()

    def _close_item(self, name: str) -> None:
        for at in range(len(self._open) - 1, -1, -1):
            found = self._open[at][0]
            if found in ITEMS[name]:
                self._close_through(at)
                return
            if found in SPECIAL and found not in ("address", "div", "p"):
                return

    def _close_paragraph(self) -> None:
        if (at := self._find({"p"}, WALLS)) is not None:
            self._close_through(at)

    def _start_in_table(self, name: str, attributes: str) -> None:
        table = self._find({"table"}, ())
        if table is None:
            return
        if name in SECTIONS or name in ("caption", "colgroup"):
            self._close_through(table + 1)
        elif name == "col":
            self._into(table, "colgroup")
        elif name == "tr":
            self._into(table, "tbody")
        else:
            self._into(table, "tr")
        self._open_element(name, attributes)

    def _into(self, table: int, name: str) -> None:
        """Make this part of the table its innermost element; open it where it is not open."""
        names = SECTIONS if name == "tbody" else {name}
        at = self._find(names, {"table"})
        if at is not None:
            self._close_through(at + 1)
            return
        if name == "tr":
            self._into(table, "tbody")
        else:
            self._close_through(table + 1)
        self._open_element(name, "")

    def _into_cell(self) -> None:
        """Open a cell for what stands in a table outside of its cells."""
        self._start_in_table("td", "")

    def _end(self, name: str) -> None:
        if name not in self._allowed.tags:
            return
        if name == "br":
            self._start_in_body("br", "")
        elif name in FORMATTING:
            at = self._find({name}, WALLS)
            if at is not None:
                self._end_formatting(at)
            else:
                self._forget_cut(name)
        elif name == "p":
            self._end_paragraph()
        elif name in TABULAR or name == "table":
            at = self._find({name}, {"table"})
            if at is not None:
                self._close_through(at)
        elif name not in VOID:
            self._end_other(name)

    def _end_paragraph(self) -> None:
        """End the open paragraph; the end of one that never began is an empty one."""
        if self._find({"p"}, WALLS) is None and not (self._open and self._open[-1][0] in OUTSIDE_CELLS):
            self._start_in_body("p", "")
        self._close_paragraph()

    def _end_other(self, name: str) -> None:
        names = HEADINGS if name in HEADINGS else {name}
        if name == "li":
            walls = WALLS | {"ol", "ul"}
        elif name in SPECIAL:
            walls = WALLS
        else:
            walls = SPECIAL
        at = self._find(names, walls)
        if at is not None:
            self._close_through(at)

    def _end_formatting(self, index: int) -> None:
        """End a formatting element; where a block is open inside it, when that block ends."""
        name, attributes, _ = self._open[index]
        if any(found[0] in SPECIAL for found in self._open[index + 1 :]):
            self._open[index] = (name, attributes, True)
            return
        while len(self._open) > index + 1:
            self._close(is_cut=True)
        self._close()
        while self._open and self._open[-1][2]:
            self._close()

    def _forget_cut(self, name: str) -> None:
        cut = self._cut[-1]
        for at in range(len(cut) - 1, -1, -1):
            if cut[at][0] == name:
                del cut[at]
                return


def _end_of(name: str) -> re.Pattern[str]:
    if name not in _ENDS:
        _ENDS[name] = re.compile(rf"</{re.escape(name)}(?=[ \t\n\f\r/>])", re.IGNORECASE | re.ASCII)
    return _ENDS[name]
