"""Markdown of blocks as the HTML of a mail: elements bring their styles, as mail programs drop sheets."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from pillarbox.documents.kept_placeholders import KeptPlaceholders

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

DEEPEST: Final = 12
"""Lists in lists and quotations in quotations."""

Styles = Mapping[str, str]
"""The style of each element by its name; `p.last` is that of a paragraph with nothing behind it."""


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False, "linkify": False, "maxNesting": DEEPEST})
    parser.enable(["table", "strikethrough"])
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
