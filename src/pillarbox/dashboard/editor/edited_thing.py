"""Things that are edited: a template, or a broadcast's draft; read and stored over the API."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, Final

from pillarbox.dashboard.editor.block_fields import State, block_of, states_of
from pillarbox.dashboard.frame.visit import Visit
from pillarbox.dashboard.people.page_visits import Form
from pillarbox.dashboard.texts import t
from pillarbox.documents.blocks import BlockDocument, Document, MarkdownDocument
from pillarbox.documents.rendering import mjml_of
from pillarbox.documents.source import document_of
from pillarbox.documents.theme import Theme
from pillarbox.kernel.process.offload import in_thread_if_large
from pillarbox.kernel.wire.problems import Invalid
from pillarbox.mail.html.plain_text import text_of

KINDS: Final = ("blocks", "markdown", "mjml", "html")
SOURCES: Final[Mapping[str, str]] = {"markdown": "text", "mjml": "source", "html": "html"}
"""The field of the document that is written in one large text field."""
HEADS: Final = ("subject", "from", "reply_to")
LARGEST_FORM: Final = 3 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class EditedThing:
    """Where a thing is edited: its screen, its path of the API, and whether it has variables and versions.
    `steps` are the tabs of the draft that it belongs to."""

    path: str
    api: str
    is_template: bool
    steps: Sequence[tuple[str, str, None]] = ()


@dataclass(frozen=True, slots=True)
class EditedContent:
    """A thing with its document, as it is stored."""

    thing: EditedThing
    shown: Mapping[str, Any]
    document: Mapping[str, Any]
    revision: str
    html: str
    text: str | None

    @property
    def kind(self) -> str:
        """How the document is written."""
        return str(self.document["kind"])

    @property
    def states(self) -> list[State]:
        """The blocks as forms show them."""
        return states_of(self.document)

    @property
    def source(self) -> str:
        """The text of a document that is no list of blocks."""
        return str(self.document.get(SOURCES.get(self.kind, ""), ""))

    @property
    def variables(self) -> Sequence[Mapping[str, Any]]:
        """The variables that are declared; a broadcast has none."""
        return self.shown.get("variables") or ()


async def content_of(visit: Visit, thing: EditedThing) -> EditedContent:
    """Return the thing with its document. Raises NotFound."""
    shown = await visit.get(thing.api)
    stored = await visit.get(f"{thing.api}/document", shown=False)
    return EditedContent(
        thing=thing,
        shown=shown,
        document=stored["document"],
        revision=stored["revision"],
        html=stored["html"],
        text=stored["text"],
    )


async def store(
    visit: Visit, thing: EditedThing, document: Mapping[str, Any], revision: str, **fields: Any
) -> Mapping[str, Any]:
    """Store a document with other fields of its thing; return what the API answers. Raises its Problem."""
    body = {"document": document, "revision": revision or None, **fields}
    stored: Mapping[str, Any] = await visit.put(f"{thing.api}/document", body)
    return stored


async def written_document(form: Form) -> Mapping[str, Any]:
    """Return the document that the editor's script sends, as the API takes it; Invalid where it is none."""
    return await in_thread_if_large(len(form.get("document")), _written_document, form)


def _written_document(form: Form) -> Mapping[str, Any]:
    try:
        state = json.loads(form.get("document") or "{}")
    except (ValueError, RecursionError):
        state = None
    if not isinstance(state, dict) or state.get("kind") not in KINDS:
        raise Invalid(t("editor.unreadable"))
    kind = state["kind"]
    document: dict[str, Any] = {"kind": kind}
    if kind == "blocks":
        blocks = state.get("blocks")
        document["blocks"] = [block_of(block) for block in blocks] if isinstance(blocks, list) else []
    else:
        document[SOURCES[kind]] = str(state.get("source") or "").replace("\r\n", "\n")
    return document | heads_of_document(kind, state)


def heads_of_document(kind: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a document of this kind says beside its text, as the fields of the editor have it."""
    if kind == "html":
        return {"text": str(given.get("text") or "").replace("\r\n", "\n") or None}
    if kind == "mjml":
        return {}
    return {
        "preheader": str(given.get("preheader") or ""),
        "language": str(given.get("language") or "").strip() or "en",
    }


def checked_document(document: Mapping[str, Any]) -> Document:
    """Return the document as it is rendered; raises a Problem that says what is wrong."""
    return document_of(dict(document))


def heads_of(form: Form, *, is_template: bool) -> dict[str, Any]:
    """Return subject, sender and addresses for answers as the API takes them; empty ones are taken away."""
    replies = [line.strip() for line in form.get("reply_to").replace("\r", "\n").split("\n") if line.strip()]
    fields: dict[str, Any] = {}
    names = {name for name, _ in form.fields}
    for name in HEADS:
        if name in names:
            value: Any = replies if name == "reply_to" else form.get(name).strip()
            fields[name] = (value or None) if is_template else value
    if "name" in names and form.get("name").strip():
        fields["name"] = form.get("name").strip()
    return fields


def other_kind(content: EditedContent, kind: str, theme: Theme) -> Mapping[str, Any]:
    """Return the document in another kind: what was made of it, or its text. There is no way back. It takes
    time in proportion to the mail."""
    if kind == "html":
        return {"kind": "html", "html": content.html, "text": content.text}
    if kind == "blocks":
        return {"kind": "blocks", "blocks": [{"type": "html", "html": content.html}]}
    if kind == "mjml" and content.kind in ("blocks", "markdown"):
        document = checked_document(content.document)
        if isinstance(document, (BlockDocument, MarkdownDocument)):
            return {"kind": "mjml", "source": mjml_of(document, theme)}
    text = content.text or text_of(content.html)
    if kind == "markdown":
        return {"kind": "markdown", "text": text}
    return {"kind": "mjml", "source": MJML_START.format(text=escape(text).replace("\n", "<br />\n"))}


MJML_START: Final = """<mjml>
  <mj-body>
    <mj-section>
      <mj-column>
        <mj-text>{text}</mj-text>
      </mj-column>
    </mj-section>
  </mj-body>
</mjml>
"""
"""MJML to begin with."""
