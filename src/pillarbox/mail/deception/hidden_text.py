"""Finds the words of a mail that its readers do not see, by the kind of hiding, apart from what they see.

    found = hidden_text(html, text)
    found.kinds                 # {"display": HiddenWords(characters=31, text="…"), …}
    found.all_text              # the words of all kinds, for `instructions`

Much of it is harmless: most newsletters hide a preview, describe pictures and carry comments. So a kind says
only what there is. Read are the first `marked_html.LONGEST_HTML` characters of the HTML without `data:`
addresses, as many tags as `limits` allows, and `LONGEST_TEXT` characters of the plain text. `is_cut` says
that there is more.
"""

from __future__ import annotations

import html as html_entities
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal, get_args

from selectolax.lexbor import LexborHTMLParser, LexborNode

from pillarbox.mail.deception.invisible import unseen_pieces, without_unseen
from pillarbox.mail.html import hidden_text as css
from pillarbox.mail.html import limits
from pillarbox.mail.html.plain_text import BREAKS
from pillarbox.mail.quotations import marked_html

HiddenKind = Literal[
    "display",
    "visibility",
    "opacity",
    "zero_size",
    "same_color",
    "off_screen",
    "comment",
    "title",
    "alt",
    "aria",
    "zero_width",
    "bidi",
    "tag_characters",
    "variation_selectors",
    "only_html",
    "only_text",
]
KINDS: Final[tuple[HiddenKind, ...]] = get_args(HiddenKind)
LONGEST_TEXT: Final = 262_144
"""Characters of the plain text that are read."""
LONGEST_KIND: Final = 16_384
"""Characters of hidden words that are kept of one kind; all are counted."""
LONGEST_VALUE: Final = 4096
"""Characters of one attribute, comment or piece that are kept."""
FEWEST_WORDS: Final = 5
"""Words of a line that only one of the two texts has, for it to count."""
MOST_LINES: Final = 5000
"""Lines of each text that are compared."""

_ATTRIBUTES: Final = {
    "title": "title",
    "alt": "alt",
    "aria-label": "aria",
    "aria-description": "aria",
    "aria-roledescription": "aria",
    "aria-valuetext": "aria",
    "aria-placeholder": "aria",
    "placeholder": "aria",
}
_TAGS = re.compile(r"<[^<>]*+>")
_CONDITION = re.compile(r"^\[if [^\]]{0,200}\]>|<!\[endif\]$|^\[endif\]$")
_URL = re.compile(r"(?:https?://|www\.|mailto:)\S+", re.IGNORECASE)
_WORD = re.compile(r"[^\W\d_]{2,}")
_UNSPACED: Final = "\u2e80"
"""The first of the letters that are written without blanks between words; two of them count as a word."""


@dataclass(slots=True)
class HiddenWords:
    """The words that are hidden in one way: how many characters, and the first of them."""

    characters: int = 0
    text: str = ""


@dataclass(frozen=True, slots=True)
class HiddenContent:
    """All that a mail hides, by its kind, and whether more of the mail was not read."""

    kinds: Mapping[HiddenKind, HiddenWords]
    is_cut: bool

    @property
    def all_text(self) -> str:
        """The words of all kinds, each kind behind a line end."""
        return "\n".join([words.text for words in self.kinds.values() if words.text])


def hidden_text(html: str | None, text: str | None = None, subject: str | None = None) -> HiddenContent:
    """Return what the readers of the mail do not see of it. Never raises for any text."""
    collector = _Collector()
    html, text = html or "", text or ""
    source = marked_html.cut(html)
    is_cut = len(text) > LONGEST_TEXT or len(source) >= marked_html.LONGEST_HTML
    text = text[:LONGEST_TEXT]
    seen = ""
    if source.strip():
        is_cut |= _read_source(source, collector)
        seen = _read_tree(source, collector)
    for one in (subject or "", seen, text):
        for piece in unseen_pieces(one):
            collector.add(piece.kind, piece.text, piece.characters)
    if seen.strip() and text.strip():
        _compare(seen, text, collector)
    return HiddenContent(collector.in_order(), is_cut)


class _Collector:
    """Hidden words by kind, each bounded."""

    def __init__(self) -> None:
        self._kinds: dict[str, list[str]] = {}
        self._characters: dict[str, int] = {}
        self._kept: dict[str, int] = {}

    def add(self, kind: str, text: str, characters: int | None = None) -> None:
        """Take words of a kind. Those without letters or digits count only where `characters` says so."""
        if characters is None:
            if not any(map(str.isalnum, text)):
                return
            characters = len(text)
        self._characters[kind] = self._characters.get(kind, 0) + characters
        kept = self._kept.get(kind, 0)
        if text and kept < LONGEST_KIND:
            said = without_unseen(text[:LONGEST_VALUE]).strip()[: LONGEST_KIND - kept]
            self._kept[kind] = kept + len(said) + 1
            self._kinds.setdefault(kind, []).append(said)

    def in_order(self) -> dict[HiddenKind, HiddenWords]:
        return {
            kind: HiddenWords(self._characters[kind], "\n".join(self._kinds.get(kind, [])))
            for kind in KINDS
            if kind in self._characters
        }


def _read_source(source: str, collector: _Collector) -> bool:
    """Take comments and attributes that are read aloud or shown on demand; return whether tags are left that
    were not looked at."""
    at = 0
    for _ in range(limits.MOST_TAGS):
        tag = limits.next_tag(source, at)
        if tag is None:
            return False
        at = tag.end()
        comment, declaration, slash, name = tag.groups()
        if comment:
            end = limits.COMMENT_END.search(source, tag.end() - 2)
            at = end.end() if end else len(source)
            inner = source[tag.end() : end.start() if end else len(source)]
            collector.add("comment", _words_of_comment(inner[:LONGEST_VALUE]))
        elif name and not slash and not declaration:
            at = _read_attributes(source, at, collector)
            if name.lower() in ("script", "style"):
                begin = limits.end_of(name.lower(), source, at)
                at = begin if begin is not None else len(source)
    return True


def _read_attributes(source: str, index: int, collector: _Collector) -> int:
    for _ in range(limits.MOST_ATTRIBUTES):
        attribute = limits.ATTRIBUTE.match(source, index)
        if attribute is None:
            break
        index = attribute.end()
        kind = _ATTRIBUTES.get(attribute[1].lower())
        if kind is not None:
            value = attribute[2] or attribute[3] or attribute[4] or ""
            collector.add(kind, html_entities.unescape(value[:LONGEST_VALUE]))
    return index


def _words_of_comment(inner: str) -> str:
    """Return the words of a comment, of which another program may read the HTML that stands in it."""
    return " ".join(html_entities.unescape(_TAGS.sub(" ", _CONDITION.sub("", inner.strip()))).split())


def _read_tree(source: str, collector: _Collector) -> str:
    """Take what is hidden by its look; return the text that is seen, with its characters that are not."""
    hidden = css.HiddenText(source)
    if not limits.is_harmless(source):
        source = limits.simplified(source, bare=limits.STAND_IN)
        hidden.is_simplified = True
    body = LexborHTMLParser(source).body
    if body is None:
        return ""
    if not hidden.enter("body", body.attributes):
        collector.add(hidden.hidden_by, _text_below(body))
        return ""
    return "".join(_seen(body, hidden, collector))


def _seen(body: LexborNode, hidden: css.HiddenText, collector: _Collector) -> Iterator[str]:
    """Yield the texts that are seen, in the order of the document; without recursion."""
    open_elements: list[LexborNode] = []
    node = body.child
    while True:
        while node is None:
            if not open_elements:
                return
            closed = open_elements.pop()
            hidden.leave()
            if closed.tag in BREAKS:
                yield "\n"
            node = closed.next
        if node.is_text_node:
            text = node.text_content or ""
            kind = hidden.text_hidden_by
            if kind is None:
                yield text
            elif text.strip():
                collector.add(kind, text)
        elif node.is_element_node:
            tag = node.tag or ""
            if tag == "br" or tag in BREAKS:
                yield "\n"
            if tag not in limits.UNREAD:
                if hidden.enter(tag, node.attributes):
                    open_elements.append(node)
                    node = node.child
                    continue
                collector.add(hidden.hidden_by, _text_below(node))
        node = node.next


def _text_below(node: LexborNode) -> str:
    """Return all text of a hidden element."""
    return " ".join((node.text(deep=True, separator=" ") or "").split())


def _compare(seen: str, text: str, collector: _Collector) -> None:
    """Take the lines of each text whose words the other has not."""
    lines_of_html, lines_of_text = _lines(seen), _lines(text)
    words_of_html = {word for line in lines_of_html for word in _words(line)}
    words_of_text = {word for line in lines_of_text for word in _words(line)}
    if len(words_of_text) >= FEWEST_WORDS:
        _take_missing("only_html", lines_of_html, words_of_text, collector)
    _take_missing("only_text", lines_of_text, words_of_html, collector)


def _lines(text: str) -> list[str]:
    text = _URL.sub(" ", without_unseen(text))
    return [line for line in text.split("\n", MOST_LINES)[:MOST_LINES] if line and not line.isspace()]


def _take_missing(kind: str, lines: list[str], other: set[str], collector: _Collector) -> None:
    for line in lines:
        words = set(_words(line))
        if len(words) >= FEWEST_WORDS and 2 * len(words & other) <= len(words):
            collector.add(kind, " ".join(line.split()))


def _words(line: str) -> Iterator[str]:
    for word in _WORD.findall(line.casefold()):
        if word[0] >= _UNSPACED:
            yield from (word[at : at + 2] for at in range(len(word) - 1))
        else:
            yield word
