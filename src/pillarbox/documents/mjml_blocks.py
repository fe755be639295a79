"""Blocks and Markdown as MJML. All that people wrote is escaped, links are judged, colours have a night."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

from pillarbox.documents import theme as themes
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
    SpacerBlock,
    TextBlock,
    written_blocks,
)
from pillarbox.documents.kept_placeholders import MARK, UNSUBSCRIBE, KeptPlaceholders
from pillarbox.documents.markdown_text import html_of, inline_html
from pillarbox.documents.safe_html import cleaned
from pillarbox.documents.theme import FONTS, Palette, Theme

SIDE: Final = 32
GAP: Final = 6
PANEL_SIDE: Final = 14
"""Pixels at both sides of the text, of a column, and of the text in a column that is a panel."""
_PADDING: Final = re.compile(r' padding="([^"]+)"')
HEADINGS: Final[Mapping[int, tuple[int, str]]] = {1: (30, "1.22"), 2: (21, "1.3"), 3: (16, "1.4")}
MONO: Final = FONTS["mono"]


@dataclass(frozen=True, slots=True)
class MjmlWriter:
    """Writes the MJML of one document."""

    theme: Theme
    kept: KeptPlaceholders

    def document(self, document: BlockDocument | MarkdownDocument) -> str:
        """Return the document as MJML, with marks in place of placeholders."""
        blocks = written_blocks(document)
        body = [block for block in blocks if not isinstance(block, FooterBlock)]
        ends = [block for block in blocks if isinstance(block, FooterBlock)]
        preheader = self._plain(document.preheader)
        head = f"<mj-preview>{preheader}</mj-preview>" if preheader else ""
        return (
            f'<mjml lang="{escape(document.language)}" dir="auto"><mj-head>{head}{self._head()}</mj-head>'
            f'<mj-body width="{self.theme.width}px" background-color="{self.day.page}" css-class="pb-page">'
            f"{self._logo()}"
            f'<mj-wrapper css-class="pb-card" background-color="{self.day.card}" padding="20px 0 24px" '
            f'border-radius="{self.theme.corner}px">{"".join(self._sections(body))}</mj-wrapper>'
            f"{''.join(self._footer(block) for block in ends)}"
            '<mj-section padding="0 0 24px"><mj-column><mj-spacer height="8px" /></mj-column></mj-section>'
            "</mj-body></mjml>"
        )

    @property
    def day(self) -> Palette:
        return themes.by_day(self.theme)

    # Head ---------------------------------------------------------------------------------------------

    def _head(self) -> str:
        night = themes.by_night(self.theme)
        rules = (
            f"body,.pb-page{{background-color:{night.page}!important}}"
            f".pb-card,.pb-card>table{{background:{night.card}!important;"
            f"background-color:{night.card}!important}}"
            f".pb-text div,.pb-text p,.pb-text li,.pb-text td,.pb-text th,.pb-text h1,.pb-text "
            f"h2,.pb-text h3,"
            f".pb-text strong{{color:{night.text}!important}}"
            f".pb-soft div,.pb-soft p,.pb-soft td{{color:{night.soft}!important}}"
            f".pb-a,.pb-soft a{{color:{night.link}!important}}"
            f".pb-line p{{border-top-color:{night.line}!important}}"
            f".pb-td,.pb-th,.pb-hr{{border-color:{night.line}!important}}"
            f".pb-panel>table>tbody>tr>td,.pb-code,.pb-code div,.pb-blockquote"
            f"{{background-color:{night.panel}!important}}"
        )
        return (
            f'<mj-attributes><mj-all font-family="{FONTS[self.theme.font]}" />'
            f'<mj-text font-size="16px" line-height="1.6" color="{self.day.text}" padding="0 0 14px" />'
            '<mj-section padding="0" /><mj-column padding="0" />'
            "</mj-attributes>"
            '<mj-raw><meta name="color-scheme" content="light dark" />'
            '<meta name="supported-color-schemes" content="light dark" /></mj-raw>'
            "<mj-style>:root{color-scheme:light dark;supported-color-schemes:light dark}"
            "@media only screen and (max-width:480px){.pb-row>table>tbody>tr>td{padding-left:20px!important;"
            "padding-right:20px!important}}"
            f"@media (prefers-color-scheme:dark){{{rules}}}</mj-style>"
        )

    def _logo(self) -> str:
        theme = self.theme
        if not theme.logo_url:
            return (
                '<mj-section padding="24px 0 0"><mj-column><mj-spacer height="8px" /></mj-column>'
                "</mj-section>"
            )
        return (
            '<mj-section padding="28px 0 20px"><mj-column>'
            f'<mj-image src="{escape(theme.logo_url)}" alt="{escape(theme.logo_alt)}" '
            f'width="{theme.logo_width}px" padding="0" /></mj-column></mj-section>'
        )

    # Sections -----------------------------------------------------------------------------------------

    def _sections(self, blocks: Sequence[Block]) -> Iterator[str]:
        """Yield sections: blocks that stand below each other share one."""
        waiting: list[str] = []
        for block in blocks:
            alone = self._alone(block)
            if alone is None:
                waiting.append(self._inner(block))
                continue
            if waiting:
                yield self._row("".join(waiting))
                waiting = []
            yield alone
        if waiting or not blocks:
            yield self._row("".join(waiting))

    def _alone(self, block: Block) -> str | None:
        """Return the section of a block that has one of its own; None for others."""
        if isinstance(block, ColumnsBlock):
            return self._columns(block)
        if isinstance(block, TextBlock) and block.panel:
            return self._panel(self._text(block))
        if isinstance(block, ImageBlock) and block.width == 0:
            return (
                f'<mj-section padding="4px 0 18px"><mj-column>{self._image(block)}</mj-column></mj-section>'
            )
        return None

    def _row(self, inner: str) -> str:
        return (
            f'<mj-section css-class="pb-row" padding="12px {SIDE}px 0"><mj-column>{inner}</mj-column>'
            f"</mj-section>"
        )

    def _panel(self, inner: str) -> str:
        return (
            f'<mj-section css-class="pb-row" padding="6px {SIDE}px 20px"><mj-column css-class="pb-panel" '
            f'background-color="{self.day.panel}" border-radius="{self.theme.corner}px" '
            f'padding="18px 20px 4px">'
            f"{inner}</mj-column></mj-section>"
        )

    def _columns(self, block: ColumnsBlock) -> str:
        look = (
            f' css-class="pb-panel" inner-background-color="{self.day.panel}" '
            f'inner-border-radius="{self.theme.corner}px"'
            if block.panel
            else ""
        )
        columns = [self._column(column, look, is_panel=block.panel) for column in block.columns]
        side = SIDE - GAP
        return f'<mj-section css-class="pb-row" padding="8px {side}px 4px">{"".join(columns)}</mj-section>'

    def _column(self, blocks: Sequence[Block], look: str, *, is_panel: bool) -> str:
        inner = "".join(self._inner(block, is_narrow=True) for block in blocks)
        if is_panel:
            inner = f'<mj-spacer height="14px" />{_with_sides(inner, PANEL_SIDE)}'
        return f'<mj-column padding="0 {GAP}px 14px"{look} vertical-align="top">{inner}</mj-column>'

    # Blocks -------------------------------------------------------------------------------------------

    def _inner(self, block: Block, *, is_narrow: bool = False) -> str:
        if isinstance(block, HeadingBlock):
            return self._heading(block, is_narrow=is_narrow)
        if isinstance(block, TextBlock):
            return self._text(block)
        if isinstance(block, ImageBlock):
            return self._image(block)
        return self._small(block)

    def _small(self, block: Block) -> str:
        if isinstance(block, ButtonBlock):
            return self._button(block)
        if isinstance(block, DividerBlock):
            return (
                f'<mj-divider css-class="pb-line" border-width="1px" border-color="{self.day.line}" '
                'padding="10px 0 24px" />'
            )
        if isinstance(block, SpacerBlock):
            return f'<mj-spacer height="{block.height}px" />'
        if isinstance(block, QuoteBlock):
            return self._quote(block)
        if isinstance(block, CodeBlock):
            return self._code(block)
        if isinstance(block, SocialBlock):
            return self._social(block)
        if isinstance(block, HtmlBlock):
            inner = cleaned(self.kept.marked(block.html), self.kept)
            return f'<mj-text css-class="pb-text">{inner}</mj-text>'
        return ""

    def _heading(self, block: HeadingBlock, *, is_narrow: bool) -> str:
        size, height = HEADINGS[block.level]
        size = min(size, 21) if is_narrow else size
        style = (
            f"margin:0;font-size:{size}px;line-height:{height};font-weight:700;letter-spacing:-0.01em;"
            f"color:{self.day.text}"
        )
        inner = inline_html(self.kept.marked(block.text), self.kept, self._styles())
        above = 6 if block.level > 1 else 0
        return (
            f'<mj-text css-class="pb-text" align="{block.align}" padding="{above}px 0 12px">'
            f'<h{block.level} style="{style}">{inner}</h{block.level}></mj-text>'
        )

    def _text(self, block: TextBlock) -> str:
        inner = html_of(self.kept.marked(block.text), self.kept, self._styles())
        return f'<mj-text css-class="pb-text" align="{block.align}" padding="0">{inner}</mj-text>'

    def _image(self, block: ImageBlock) -> str:
        source = self.kept.link(self.kept.marked(block.src))
        if source is None or not source.lower().startswith(("http", MARK)):
            return ""
        href = self.kept.link(self.kept.marked(block.href))
        link = f' href="{escape(href)}"' if href else ""
        width = f' width="{min(block.width, self.theme.width)}px"' if block.width else ""
        padding = "0 0 16px" if block.width else "0"
        return (
            f'<mj-image src="{escape(source)}" alt="{self._plain(block.alt)}" '
            f'align="{block.align}"{link}{width} '
            f'padding="{padding}" border-radius="{min(self.theme.corner, 8) if block.width else 0}px" />'
        )

    def _button(self, block: ButtonBlock) -> str:
        label = self._plain(block.text)
        if not label:
            return ""
        href = self.kept.link(self.kept.marked(block.href))
        link = f' href="{escape(href)}"' if href else ""
        wide = ' width="100%"' if block.wide else ""
        return (
            f'<mj-button{link} align="{block.align}" background-color="{self.theme.accent.lower()}" '
            f'color="{themes.on_accent(self.theme)}" font-size="16px" font-weight="600" '
            f'border-radius="{min(self.theme.corner, 10)}px" inner-padding="13px 24px"{wide} '
            f'padding="6px 0 22px">{label}</mj-button>'
        )

    def _quote(self, block: QuoteBlock) -> str:
        inner = html_of(self.kept.marked(block.text), self.kept, self._styles())
        by = self._plain(block.by)
        named = f'<p style="margin:0;color:{self.day.soft};font-size:14px">— {by}</p>' if by else ""
        return (
            '<mj-text css-class="pb-text" padding="0 0 18px">'
            f'<div style="border-left:3px solid {self.theme.accent.lower()};padding:2px 0 2px 16px">'
            f"{inner}{named}"
            "</div></mj-text>"
        )

    def _code(self, block: CodeBlock) -> str:
        text = escape(self.kept.marked(block.text)).replace("\n", "<br />").replace("  ", "&nbsp; ")
        return (
            '<mj-text css-class="pb-text" padding="0 0 18px">'
            f'<div class="pb-code" style="background-color:{self.day.panel};border-radius:8px;'
            f"padding:14px 16px;"
            f'font-family:{MONO};font-size:14px;line-height:1.5;color:{self.day.text};word-break:break-word">'
            f"{text}</div></mj-text>"
        )

    def _social(self, block: SocialBlock) -> str:
        links = []
        for link in block.links:
            href = self.kept.link(self.kept.marked(link.href))
            if href and (name := self._plain(link.name)):
                links.append(
                    f'<a class="pb-a" href="{escape(href)}" target="_blank" '
                    f'style="color:{self.day.link};text-decoration:none;font-weight:600">{name}</a>'
                )
        return (
            f'<mj-text css-class="pb-text" align="{block.align}" padding="0 0 14px">'
            f"{' &nbsp;·&nbsp; '.join(links)}</mj-text>"
            if links
            else ""
        )

    def _footer(self, block: FooterBlock) -> str:
        theme, soft = self.theme, _soft_on(self.day)
        lines = []
        styles = {**self._styles(), "p": "margin:0 0 8px", "a": f"color:{soft};text-decoration:underline"}
        for text in (block.text or theme.footer, block.address or theme.address):
            if text.strip():
                lines.append(html_of(self.kept.marked(text), self.kept, styles))
        if label := self._plain(block.unsubscribe):
            mark = self.kept.marked(UNSUBSCRIBE)
            lines.append(
                f'<p style="margin:0"><a class="pb-a" href="{mark}" target="_blank" '
                f'style="color:{soft};text-decoration:underline">{label}</a></p>'
            )
        return (
            f'<mj-section padding="22px {SIDE}px 0"><mj-column><mj-text css-class="pb-soft" align="center" '
            f'color="{soft}" font-size="13px" line-height="1.55" padding="0">{"".join(lines)}</mj-text>'
            "</mj-column></mj-section>"
            if lines
            else ""
        )

    # Texts --------------------------------------------------------------------------------------------

    def _plain(self, text: str) -> str:
        """Return one line of text, escaped, with marks."""
        return escape(" ".join(self.kept.marked(text).split()))

    def _styles(self) -> Mapping[str, str]:
        day = self.day
        cell = f"border-bottom:1px solid {day.line};padding:9px 12px 9px 0;vertical-align:top;text-align:left"
        return {
            "p": "margin:0 0 14px",
            "a": f"color:{day.link};text-decoration:underline",
            "ul": "margin:0 0 14px;padding-left:22px",
            "ol": "margin:0 0 14px;padding-left:22px",
            "li": "margin:0 0 6px",
            "h1": f"margin:4px 0 12px;font-size:28px;line-height:1.22;color:{day.text}",
            "h2": f"margin:10px 0 10px;font-size:21px;line-height:1.3;color:{day.text}",
            "h3": f"margin:8px 0 8px;font-size:17px;line-height:1.4;color:{day.text}",
            "h4": "margin:6px 0 6px;font-size:16px;line-height:1.4",
            "h5": "margin:6px 0 6px;font-size:15px",
            "h6": "margin:6px 0 6px;font-size:14px",
            "blockquote": f"margin:0 0 14px;padding:4px 0 4px 16px;border-left:3px solid {day.line}",
            "code": f"font-family:{MONO};font-size:14px;background-color:{day.panel};"
            "border-radius:4px;padding:1px 4px",
            "pre": "margin:0 0 14px;white-space:pre-wrap;word-break:break-word",
            "hr": f"border:0;border-top:1px solid {day.line};margin:18px 0",
            "img": "max-width:100%;height:auto;border:0",
            "table": "width:100%;border-collapse:collapse;margin:0 0 14px;font-size:15px;line-height:1.45",
            "td": cell,
            "th": f"{cell};font-weight:600",
        }


def _with_sides(elements: str, side: int) -> str:
    """Return elements of MJML with this padding at both sides."""

    def padded(padding: re.Match[str]) -> str:
        values = padding[1].split(" ")
        return f' padding="{values[0]} {side}px {values[-1 if len(values) == 3 else 0]} {side}px"'

    return _PADDING.sub(padded, elements)


def _soft_on(day: Palette) -> str:
    """Return the colour of small text on the page behind the card."""
    return themes.readable_between(day.soft, day.page, day.text)


def blocks_of(document: BlockDocument) -> Iterator[Block]:
    """Yield all blocks of a document, those of columns behind them."""
    for block in document.blocks:
        yield block
        if isinstance(block, ColumnsBlock):
            for column in block.columns:
                yield from column
