"""Kinds of documents: blocks, Markdown, MJML, HTML. All bounds stand in these types."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from msgspec import Meta, Struct

MOST_BLOCKS: Final = 200
MOST_OF_COLUMN: Final = 20
MOST_COLUMNS: Final = 4
LONGEST_TEXT: Final = 20_000
LONGEST_HTML: Final = 100_000
LONGEST_SOURCE: Final = 400_000
LONGEST_LINK: Final = 2000

Line = Annotated[str, Meta(max_length=500)]
Text = Annotated[str, Meta(max_length=LONGEST_TEXT)]
Address = Annotated[str, Meta(max_length=LONGEST_LINK)]
Align = Literal["left", "center", "right"]


class BlockBase(Struct, kw_only=True, forbid_unknown_fields=True, tag_field="type"):
    """A block; its field `type` says of which kind."""


class HeadingBlock(BlockBase, tag="heading"):
    text: Line = ""
    level: Annotated[int, Meta(ge=1, le=3)] = 2
    align: Align = "left"


class TextBlock(BlockBase, tag="text"):
    """Text in Markdown. A panel has a background of its own."""

    text: Text = ""
    align: Align = "left"
    panel: bool = False


class ImageBlock(BlockBase, tag="image"):
    """A picture by its address; `width` in pixels, 0 is all that there is."""

    src: Address = ""
    alt: Line = ""
    href: Address = ""
    width: Annotated[int, Meta(ge=0, le=1200)] = 0
    align: Align = "center"


class ButtonBlock(BlockBase, tag="button"):
    text: Line = ""
    href: Address = ""
    align: Align = "left"
    wide: bool = False


class DividerBlock(BlockBase, tag="divider"):
    """A line."""


class SpacerBlock(BlockBase, tag="spacer"):
    height: Annotated[int, Meta(ge=4, le=160)] = 24


class QuoteBlock(BlockBase, tag="quote"):
    text: Text = ""
    by: Line = ""


class CodeBlock(BlockBase, tag="code"):
    text: Text = ""


class SocialLink(Struct, kw_only=True, forbid_unknown_fields=True):
    name: Annotated[str, Meta(max_length=200)] = ""
    href: Address = ""


class SocialBlock(BlockBase, tag="social"):
    links: Annotated[list[SocialLink], Meta(max_length=12)] = []
    align: Align = "center"


class FooterBlock(BlockBase, tag="footer"):
    """The end of a mail. Without `unsubscribe`, the text of its link, there is no link."""

    text: Annotated[str, Meta(max_length=2000)] = ""
    address: Line = ""
    unsubscribe: Line = ""


class HtmlBlock(BlockBase, tag="html"):
    """HTML as its author wrote it; what a mail may not hold is taken out."""

    html: Annotated[str, Meta(max_length=LONGEST_HTML)] = ""


ColumnContent = (
    HeadingBlock
    | TextBlock
    | ImageBlock
    | ButtonBlock
    | DividerBlock
    | SpacerBlock
    | QuoteBlock
    | CodeBlock
    | SocialBlock
    | HtmlBlock
)
"""Blocks that may stand in a column: columns are not nested."""


class ColumnsBlock(BlockBase, tag="columns"):
    """Two to four columns; on a telephone they stand below each other."""

    columns: Annotated[
        list[Annotated[list[ColumnContent], Meta(max_length=MOST_OF_COLUMN)]],
        Meta(min_length=2, max_length=MOST_COLUMNS),
    ]
    panel: bool = False


Block = ColumnContent | ColumnsBlock | FooterBlock


class DocumentBase(Struct, kw_only=True, forbid_unknown_fields=True, tag_field="kind"):
    """A document; its field `kind` says how it is written."""


Language = Annotated[str, Meta(pattern=r"^[A-Za-z]{2,3}(?:-[A-Za-z0-9]{2,8})*$", max_length=20)]


class BlockDocument(DocumentBase, tag="blocks"):
    """`preheader` is the text that mailboxes show behind the subject, `language` that of the text."""

    blocks: Annotated[list[Block], Meta(max_length=MOST_BLOCKS)] = []
    preheader: Line = ""
    language: Language = "en"


class MarkdownDocument(DocumentBase, tag="markdown"):
    text: Annotated[str, Meta(max_length=200_000)] = ""
    preheader: Line = ""
    language: Language = "en"


class MjmlDocument(DocumentBase, tag="mjml"):
    source: Annotated[str, Meta(max_length=LONGEST_SOURCE)] = ""


class HtmlDocument(DocumentBase, tag="html"):
    """HTML that is sent as it is; `text` is its text part, None where it is made of the HTML."""

    html: str = ""
    text: str | None = None


_WAY_OUT: Final = {"de": "Abmelden"}


def way_out(language: str) -> str:
    """Return the text of the link to unsubscribe for a mail in this language; English where there is none."""
    return _WAY_OUT.get(language.partition("-")[0].lower(), "Unsubscribe")


def written_blocks(document: BlockDocument | MarkdownDocument) -> list[Block]:
    """Return the blocks of a document. Markdown is one text, with a footer unless it has a way out."""
    if isinstance(document, BlockDocument):
        return document.blocks
    blocks: list[Block] = [TextBlock(text=document.text)]
    if "UNSUBSCRIBE_URL" not in document.text:
        blocks.append(FooterBlock(unsubscribe=way_out(document.language)))
    return blocks


Document = BlockDocument | MarkdownDocument | MjmlDocument | HtmlDocument
