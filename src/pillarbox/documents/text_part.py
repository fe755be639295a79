"""The text part of a mail, made of its document: all texts, and the address of each link."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from typing import Final

from pillarbox.documents.blocks import (
    Block,
    BlockDocument,
    ButtonBlock,
    CodeBlock,
    ColumnsBlock,
    DividerBlock,
    FooterBlock,
    HeadingBlock,
    HtmlBlock,
    ImageBlock,
    MarkdownDocument,
    QuoteBlock,
    SocialBlock,
    TextBlock,
    written_blocks,
)
from pillarbox.documents.kept_placeholders import MARK, UNSUBSCRIBE, KeptPlaceholders
from pillarbox.documents.markdown_text import html_of, inline_html
from pillarbox.documents.safe_html import cleaned
from pillarbox.documents.theme import Theme
from pillarbox.mail.html.plain_text import text_of

_PREFIX: Final = "https://placeholder.invalid/"
_MARKED_LINK: Final = re.compile(f'href="(?={MARK})')
LINE: Final = "-" * 40


def text_part(document: BlockDocument | MarkdownDocument, theme: Theme) -> str:
    """Return the text of a document, with its placeholders."""
    kept = KeptPlaceholders()
    blocks = written_blocks(document)
    ends = [block for block in blocks if isinstance(block, FooterBlock)]
    parts = [part.strip() for block in blocks if block not in ends for part in _parts(block, kept)]
    foot = [part for block in ends if (part := _footer(block, theme, kept))]
    if foot:
        parts += [LINE, *foot]
    return kept.in_text("\n\n".join(part for part in parts if part)).strip() + "\n"


def _parts(block: Block, kept: KeptPlaceholders) -> Iterator[str]:
    if isinstance(block, ColumnsBlock):
        for column in block.columns:
            for inner in column:
                yield from _parts(inner, kept)
    elif isinstance(block, HeadingBlock):
        text = _html_text(inline_html(kept.marked(block.text), kept, {}))
        yield f"{text}\n{'=' * min(len(kept.in_text(text)), 40)}" if block.level == 1 and text else text
    elif isinstance(block, TextBlock):
        yield _markdown_text(block.text, kept)
    elif isinstance(block, QuoteBlock):
        lines = [f"> {line}".rstrip() for line in _markdown_text(block.text, kept).split("\n")]
        yield "\n".join([*lines, *([f"> — {kept.marked(block.by)}"] if block.by.strip() else [])])
    elif isinstance(block, HtmlBlock):
        yield _html_text(cleaned(kept.marked(block.html), kept))
    else:
        yield _line_of(block, kept)


def _line_of(block: Block, kept: KeptPlaceholders) -> str:
    if isinstance(block, ImageBlock):
        return f"[{kept.marked(block.alt)}]" if block.alt.strip() else ""
    if isinstance(block, ButtonBlock):
        return _link(block.text, block.href, kept)
    if isinstance(block, SocialBlock):
        return "\n".join(_link(link.name, link.href, kept) for link in block.links)
    if isinstance(block, CodeBlock):
        return "\n".join(f"    {line}" for line in kept.marked(block.text).split("\n"))
    return LINE if isinstance(block, DividerBlock) else ""


def _footer(block: FooterBlock, theme: Theme, kept: KeptPlaceholders) -> str:
    lines = [
        _markdown_text(text, kept)
        for text in (block.text or theme.footer, block.address or theme.address)
        if text.strip()
    ]
    if block.unsubscribe.strip():
        lines.append(f"{kept.marked(block.unsubscribe)}: {kept.marked(UNSUBSCRIBE)}")
    return "\n".join(lines)


def _link(text: str, href: str, kept: KeptPlaceholders) -> str:
    address = kept.link(kept.marked(href))
    name = " ".join(kept.marked(text).split())
    return f"{name}: {address}" if name and address else name


def _markdown_text(text: str, kept: KeptPlaceholders) -> str:
    return _html_text(html_of(kept.marked(text), kept, {}))


def _html_text(html: str) -> str:
    """Return the text of HTML with marks. A link that begins with a mark counts as one to the web."""
    return unescape(text_of(_MARKED_LINK.sub(f'href="{_PREFIX}', html))).replace(_PREFIX, "")
