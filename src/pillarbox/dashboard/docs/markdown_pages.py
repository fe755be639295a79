"""Markdown as HTML: headings have anchors, links lead to pages of the documentation, raw HTML is text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from markupsafe import Markup, escape

from pillarbox.dashboard.texts import t

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

FENCE: Final = "```"
_COMMENT = re.compile(r"<!--.*?-->[ \t]*\n?", re.DOTALL)
_BREAKS = re.compile(r"(?<=[_/.,=])(?=\w)")
_NOT_IN_ANCHORS = re.compile(r"[^\w\- ]")


class DocLink(NamedTuple):
    """The target of a link: its address here, and its title where it is a page of the guide."""

    address: str
    title: str = ""


LinkTarget = Callable[[str], DocLink | None]
"""From a link as a page has it to what it leads to; None where that is not here."""


class PageHeading(NamedTuple):
    """A heading of a page: its level, its text and its anchor."""

    level: int
    text: str
    anchor: str


class PageSection(NamedTuple):
    """A heading and the text below it, for the search."""

    heading: PageHeading
    text: str


@dataclass(frozen=True, slots=True)
class MarkdownPage:
    """A page as HTML, with its headings and the text of each section."""

    title: str
    html: Markup
    headings: Sequence[PageHeading]
    sections: Sequence[PageSection]


def without_comments(source: str) -> str:
    """Return Markdown without the comments that stand outside of code."""
    parts = re.split(rf"(?ms)(^{FENCE}.*?^{FENCE}[ \t]*$)", source)
    return "".join(part if part.startswith(FENCE) else _COMMENT.sub("", part) for part in parts)


def rendered(source: str, link_target: LinkTarget) -> MarkdownPage:
    """Return a page of Markdown as HTML. Links without a target become plain text."""
    parser = _parser()
    tokens = parser.parse(without_comments(source))
    headings = list(_with_anchors(tokens))
    for token in tokens:
        if token.type == "inline":
            token.children = list(_with_targets(token.children or [], link_target))
    html = parser.renderer.render(tokens, parser.options, {})
    title = next((heading.text for heading in headings if heading.level == 1), "")
    return MarkdownPage(title, Markup(html), headings, list(_sections(tokens, headings)))  # noqa: S704 (html off)


def anchor_of(text: str) -> str:
    """Return the anchor of a heading, as GitHub makes it."""
    return _NOT_IN_ANCHORS.sub("", text.strip().lower()).replace(" ", "-")


@cache
def _parser() -> MarkdownIt:
    # Loaded with the first page: many processes never show one.
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    parser.add_render_rule("fence", _fence)
    parser.add_render_rule("code_block", _fence)
    parser.add_render_rule("code_inline", _code)
    parser.add_render_rule("table_open", _table_open)
    parser.add_render_rule("table_close", _table_close)
    return parser


def _fence(_: Any, tokens: Sequence[Token], index: int, *__: Any) -> str:
    text = escape(tokens[index].content.rstrip("\n"))
    return (
        f'<div class="code"><pre tabindex="0">{text}</pre>'
        f'<button type="button" class="copy" hidden data-copy>{escape(t("frame.copy"))}</button></div>\n'
    )


def _code(_: Any, tokens: Sequence[Token], index: int, *__: Any) -> str:
    """Return code of a line; a long name may break behind its signs."""
    return f"<code>{'<wbr>'.join(map(escape, _BREAKS.split(tokens[index].content)))}</code>"


def _table_open(*_: Any) -> str:
    return '<div class="scroll" tabindex="0"><table>\n'


def _table_close(*_: Any) -> str:
    return "</table></div>\n"


def _with_anchors(tokens: Sequence[Token]) -> Iterator[PageHeading]:
    """Give each heading its anchor; several with the same text are numbered."""
    seen: dict[str, int] = {}
    for index, token in enumerate(tokens):
        if token.type == "heading_open":
            text = _text_of(tokens[index + 1])
            anchor = anchor_of(text)
            number = seen[anchor] = seen.get(anchor, -1) + 1
            if number:
                anchor = f"{anchor}-{number}"
            token.attrSet("id", anchor)
            yield PageHeading(int(token.tag[1:]), text, anchor)


def _text_of(token: Token) -> str:
    return "".join(
        child.content if child.type in ("text", "code_inline") else " "
        for child in token.children or ()
        if child.type in ("text", "code_inline", "softbreak", "hardbreak")
    )


def _with_targets(children: Sequence[Token], link_target: LinkTarget) -> Iterator[Token]:
    """Yield the tokens of a line with the targets of its links and pictures; unknown ones are left out.

    A link whose text is the name of a file gets the title of the page.
    """
    open_links: list[DocLink | None] = []
    for child in children:
        if child.type == "link_open":
            link = link_target(str(child.attrs["href"]))
            open_links.append(link)
            if link is None:
                continue
            child.attrs["href"] = link.address
            if not link.address.startswith(("/", "#")):
                child.attrs["rel"] = "noopener noreferrer"
        elif child.type == "link_close":
            if open_links.pop() is None:
                continue
        elif child.type == "image":
            picture = link_target(str(child.attrs["src"]))
            if picture is None:
                continue
            child.attrs["src"] = picture.address
            child.attrs["loading"] = "lazy"
        elif child.type == "text" and open_links and (link := open_links[-1]) is not None and link.title:
            child.content = link.title if child.content.endswith(".md") else child.content
        yield child


def _sections(tokens: Sequence[Token], headings: Sequence[PageHeading]) -> Iterator[PageSection]:
    """Yield each heading with the text until the next one."""
    lines: list[str] = []
    numbers = iter(headings)
    heading = PageHeading(1, "", "")
    is_heading = False
    for token in tokens:
        if token.type == "heading_open":
            if heading.anchor or lines:
                yield PageSection(heading, " ".join(lines))
            heading, lines, is_heading = next(numbers), [], True
        elif token.type == "inline":
            if not is_heading:
                lines.append(_text_of(token))
            is_heading = False
        elif token.type in ("fence", "code_block"):
            lines.append(token.content)
    yield PageSection(heading, " ".join(lines))
