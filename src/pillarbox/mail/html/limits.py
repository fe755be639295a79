"""HTML cut down so that a tree builder needs linear time for it (TRAP-06).

Tree builders walk the open elements at every tag and the attributes at every attribute, so hostile HTML
of some hundred kilobytes keeps them busy for minutes. `simplified` reads the tags once from left to right and
writes the document anew: well nested, at most 256 elements deep, with the few attributes that matter for
reading the text. Whatever it misreads is only misread; what it writes is always harmless.
"""

from __future__ import annotations

import re

BLOCK = 64 * 1024
DEEPEST = 256
MOST_TAGS = 50_000
"""The text of a document ends at this tag; no mail that people read comes near."""
MOST_ATTRIBUTES = 256
"""Those of a tag that are looked at."""
LONGEST_ATTRIBUTE = 8192
"""Characters of a value; what is longer is left out."""
STAND_IN = "\x01"
"""May stand for `<` in what is written: as short as what it stands for, and in no text."""
HARMLESS_LENGTH = 16_384
HARMLESS_TAGS = 1000
HARMLESS_COPIES = 20_000
"""Documents up to these limits cost a tree builder at most some milliseconds, whatever they hold: each
formatting element may be copied into each block."""

KEPT_ATTRIBUTES = frozenset(
    (
        *("href", "alt", "style", "hidden", "class", "id", "width", "height", "type", "cite", "name"),
        *("bgcolor", "background", "color", "text", "size"),
    )
)
VOID = frozenset(
    ("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "wbr")
)
SELF_CLOSING = frozenset(("p", "li", "dt", "dd", "tr", "td", "th", "thead", "tbody", "tfoot", "caption"))
"""Elements that end where the next of their kind begins, so that they do not add depth of their own."""
CONTAINERS = frozenset(
    (
        *("a", "address", "article", "aside", "blockquote", "center", "details", "div", "dl", "fieldset"),
        *("figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "legend"),
        *("main", "nav", "ol", "pre", "section", "span", "summary", "table", "ul"),
    )
)
UNREAD = frozenset(
    (
        *("script", "style", "head", "title", "template", "textarea", "select", "svg", "math", "iframe"),
        *("object", "video", "audio", "canvas", "noembed", "noframes"),
    )
)
"""Elements whose content is no text of the message."""

WRITTEN_FOR = "data-written-for"
"""The attribute of a `span` that stands for an element of another name."""
_NAME = re.compile(r"[a-z][a-z0-9]{0,9}")

RAW = frozenset(("script", "style", "title", "textarea", "iframe", "noembed", "noframes"))
"""Those of them that run to the end of the document when they are not closed (HTML 13.2.5)."""

_BLANK = "[ \\t\\n\\f\\r]"
TAG = re.compile(r"<(?:(!--)|([!?])|(/?)([A-Za-z][^ \t\n\f\r/>]*+))")
ATTRIBUTE = re.compile(
    r"[ \t\n\f\r/]*+([^ \t\n\f\r/>][^ \t\n\f\r/>=]*+)"
    rf"(?:{_BLANK}*+={_BLANK}*+(?:\"([^\"]*+)\"|'([^']*+)'|([^ \t\n\f\r>]*+)))?"
)
_FORMATTING = re.compile(
    r"<(?:[abisu]|em|tt|big|code|font|nobr|small|strike|strong)[ \t\n\f\r/>]", re.IGNORECASE
)
COMMENT_END = re.compile(r"--!?>")
_ENDS = {name: re.compile(rf"</{name}(?=[ \t\n\f\r/>])", re.IGNORECASE | re.ASCII) for name in UNREAD}


def next_tag(html: str, index: int) -> re.Match[str] | None:
    """Return the next tag, comment or declaration. Searched in blocks, between which other threads
    may run."""
    while index < len(html):
        found = TAG.search(html, index, index + BLOCK)
        if found is not None:
            return TAG.match(html, found.start())
        # What begins at the end of a block ends in the next one.
        index += BLOCK - len("<!-")
    return None


def end_of(name: str, html: str, index: int) -> int | None:
    """Return where the end tag of one of `UNREAD` begins behind the index; None where there is none."""
    found = _ENDS[name].search(html, index)
    return None if found is None else found.start()


def is_harmless(html: str) -> bool:
    """Return whether the document is so small that no content can make it expensive."""
    if len(html) > HARMLESS_LENGTH:
        return False
    tags = html.count("<")
    return tags <= HARMLESS_TAGS and tags * _formatting(html) <= HARMLESS_COPIES


def _formatting(html: str) -> int:
    """Return how many tags there are, at most, that begin a formatting element (HTML 13.2.4.3)."""
    return len(_FORMATTING.findall(html))


def simplified(html: str, bare: str = "&lt;") -> str:
    """Return the same text, links and blocks as `html`, in a form that is cheap to build a tree of. `bare` is
    written for each `<` that begins no tag."""
    return _Simplifier(html, bare).written()


class _Simplifier:
    """One pass over the document; `_at` only ever grows."""

    def __init__(self, html: str, bare: str) -> None:
        self._html = html.replace(STAND_IN, " ")
        self._bare = bare
        self._at = 0
        self._out: list[str] = []
        self._open: list[str] = []
        self._never_closed: set[str] = set()

    def written(self) -> str:
        for _ in range(MOST_TAGS):
            found = next_tag(self._html, self._at)
            if found is None:
                self._text(len(self._html))
                break
            self._text(found.start())
            self._at = found.end()
            self._markup(found)
            if self._at >= len(self._html):
                break
        return "".join(self._out)

    def _text(self, end: int) -> None:
        self._out.append(self._html[self._at : end].replace("<", self._bare))

    def _markup(self, match: re.Match[str]) -> None:
        comment, declaration, slash, name = match.groups()
        if comment:
            end = COMMENT_END.search(self._html, match.end() - 2)
            self._at = end.end() if end else len(self._html)
        elif declaration or slash:
            if slash:
                self._end(name.lower())
            self._skip_past(">")
        else:
            self._start(name.lower(), self._attributes())

    def _skip_past(self, mark: str) -> None:
        at = self._html.find(mark, self._at)
        self._at = at + 1 if at >= 0 else len(self._html)

    def _attributes(self) -> str:
        """Return the attributes of the start tag at hand that are kept; the first of a name counts."""
        kept: dict[str, str] = {}
        for _ in range(MOST_ATTRIBUTES):
            found = ATTRIBUTE.match(self._html, self._at)
            if found is None:
                break
            self._at = found.end()
            name = found[1].lower()
            if name in KEPT_ATTRIBUTES and name not in kept:
                value = found[2] or found[3] or found[4] or ""
                kept[name] = value.replace('"', "&quot;") if len(value) <= LONGEST_ATTRIBUTE else ""
        self._skip_past(">")
        return "".join([f' {name}="{value}"' for name, value in kept.items()])

    def _start(self, name: str, attributes: str) -> None:
        if name in UNREAD:
            self._skip(name)
        elif name in VOID or name in SELF_CLOSING:
            self._out.append(f"<{name}{attributes}>")
        elif len(self._open) >= DEEPEST:
            self._out.append("<br>" if name in CONTAINERS and name not in ("a", "span") else "")
        else:
            self._open.append(name)
            self._out.append(f"<{_start_of(name)}{attributes}>")

    def _skip(self, name: str) -> None:
        """Pass over the element; one that is never closed loses its tag only, unless it is raw text."""
        if name in self._never_closed:
            return
        end = _ENDS[name].search(self._html, self._at)
        if end is not None:
            self._at = end.start()
        elif name in RAW:
            self._at = len(self._html)
        else:
            self._never_closed.add(name)

    def _end(self, name: str) -> None:
        if name in SELF_CLOSING:
            self._out.append(f"</{name}>")
        while name in self._open:
            closed = self._open.pop()
            self._out.append(f"</{_written_as(closed)}>")
            if closed == name:
                break


def _start_of(name: str) -> str:
    if name in CONTAINERS:
        return name
    return f"span {WRITTEN_FOR}={name}" if _NAME.fullmatch(name) else "span"


def _written_as(name: str) -> str:
    return name if name in CONTAINERS else "span"
