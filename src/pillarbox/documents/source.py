"""A document as it is kept beside the HTML that was made of it.

The digest of that HTML is kept with it: whoever changes the HTML alone, by whatever way, makes the mail one
of HTML, and the document does not count any more.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Any, Final

import msgspec
from msgspec import Struct

from pillarbox.documents.blocks import Document, HtmlDocument
from pillarbox.kernel.wire.problems import InvalidField


class DocumentBesideHtml(Struct, kw_only=True, frozen=True):
    html_digest: str
    document: Document


_decoder: Final = msgspec.json.Decoder(DocumentBesideHtml)


def stored(document: Document, html: str) -> str | None:
    """Return the document as it is kept beside this HTML; None for HTML, which is kept as it is."""
    if isinstance(document, HtmlDocument):
        return None
    return msgspec.json.encode(DocumentBesideHtml(html_digest=_digest(html), document=document)).decode()


def of_stored(source: str | None, html: str, text: str | None) -> Document:
    """Return the document of a mail: what is kept, or else its HTML. One that a later release wrote, and
    this one cannot read, counts as HTML."""
    if source is not None:
        try:
            kept = _decoder.decode(source)
        except msgspec.ValidationError:
            kept = None
        if kept is not None and kept.html_digest == _digest(html):
            return kept.document
    return HtmlDocument(html=html, text=text)


def document_of(value: Any) -> Document:
    """Return the document that a request has, as JSON is read; 422 where it is none."""
    try:
        document: Document = msgspec.convert(value, Document)
    except msgspec.ValidationError as wrong:
        raise InvalidField("document", f"{str(wrong).rstrip('.')}.") from None
    return document


def builtins_of(document: Document) -> Any:
    """Return the document as dicts and lists, as JSON shows it."""
    return msgspec.to_builtins(document)


def _digest(html: str) -> str:
    return sha256(html.encode("utf-8", "surrogatepass")).hexdigest()
