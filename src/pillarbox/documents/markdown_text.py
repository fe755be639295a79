"""Markdown of blocks as the HTML of a mail: elements bring their styles, as mail programs drop sheets."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from math import inf
from typing import TYPE_CHECKING, Any, Final

from pillarbox.documents.kept_placeholders import KeptPlaceholders
from pillarbox.kernel.wire.problems import InvalidField

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

DEEPEST: Final = 12
"""Lists in lists and quotations in quotations."""
MOST_SECONDS: Final = 2.0
"""Processor time that all Markdown of a document may take. An honest mail takes a hundredth."""

_ends: ContextVar[float] = ContextVar("markdown_ends", default=inf)

Styles = Mapping[str, str]
"""The style of each element by its name; `p.last` is that of a paragraph with nothing behind it."""


class MarkdownTooLong(InvalidField):
    """The Markdown takes too long to be read (422)."""

    def __init__(self) -> None:
        super().__init__("document", "Its Markdown takes too long to be read. Use fewer marks.")


@contextmanager
def limited_time() -> Iterator[None]:
    """Raise MarkdownTooLong once the Markdown of this block has taken `MOST_SECONDS` of processor time."""
    # The first document of a process loads the parser: that time is not the document's.
    _parser()
    mark = _ends.set(time.thread_time() + MOST_SECONDS)
    try:
        yield
    finally:
        _ends.reset(mark)


def _check_time(*_: Any) -> bool:
    """Be a rule of the parser that never matches: it is asked at every step."""
    if time.thread_time() > _ends.get():
        raise MarkdownTooLong
    return False


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False, "linkify": False, "maxNesting": DEEPEST})
    parser.enable(["table", "strikethrough"])
    parser.block.ruler.before("table", "time", _check_time)
    parser.inline.ruler.before("text", "time", _check_time)
    # Links are judged when they are written: a mark of a placeholder is no address yet.
    parser.validateLink = _any_link  # type: ignore[method-assign]
    parser.normalizeLink = _same_link  # type: ignore[method-assign]
    return parser


def _any_link(url: str) -> bool:
    return True


def _same_link(url: str) -> str:
    return url


def html_of(text: str, kept: KeptPlaceholders, styles: Styles) -> str:
    """Return marked Markdown as HTML. Links that may not stand in a mail lose their address."""
    parser = _parser()
    tokens = parser.parse(text)
    _dress(tokens, kept, styles)
    return str(parser.renderer.render(tokens, parser.options, {})).strip()


def inline_html(text: str, kept: KeptPlaceholders, styles: Styles) -> str:
    """Return one marked line of Markdown as HTML without a paragraph around it."""
    parser = _parser()
    tokens = parser.parseInline(" ".join(text.split()))
    _dress(tokens, kept, styles)
    return str(parser.renderer.render(tokens, parser.options, {})).strip()


def _dress(tokens: list[Any], kept: KeptPlaceholders, styles: Styles) -> None:
    """Give the elements their styles and judge the links, those within lines as well."""
    waiting = [tokens]
    while waiting:
        for token in waiting.pop():
            if token.children:
                waiting.append(token.children)
            if token.type == "link_open":
                address = kept.link(str(token.attrs.get("href", "")))
                token.attrs.pop("href", None)
                if address is not None:
                    token.attrSet("href", address)
                    token.attrSet("target", "_blank")
            elif token.type == "image":
                address = kept.link(str(token.attrs.get("src", "")))
                token.attrSet("src", address or "")
            if token.nesting >= 0 and (style := styles.get(token.tag)):
                own = str(token.attrs.get("style", ""))
                token.attrSet("style", f"{style};{own}" if own else style)
            if token.nesting >= 0 and token.tag in ("a", "hr", "blockquote", "code", "td", "th"):
                token.attrJoin("class", f"pb-{token.tag}")
