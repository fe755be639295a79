"""Shapes of the documents of templates (templates.md 10); field order is the contract's."""

from __future__ import annotations

from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from pillarbox.documents.source import builtins_of
from pillarbox.kernel.wire.instants import DatabaseTime
from pillarbox.kernel.wire.shapes import from_row
from pillarbox.templates.document_changes import REVISION, TemplateDocument
from pillarbox.templates.queries import ListedVersion
from pillarbox.templates.wire import OtherName, Replies, Subject, Variables

DocumentJson = Annotated[Any, Meta(extra_json_schema={"type": "object", "additionalProperties": True})]


class PutDocument(Struct, kw_only=True):
    """A document, and other fields of its template; what is not named stays."""

    document: DocumentJson
    revision: Annotated[str, Meta(max_length=REVISION)] | None = None
    name: OtherName | UnsetType = UNSET
    from_: str | UnsetType | None = msgspec.field(name="from", default=UNSET)
    subject: Subject | UnsetType | None = UNSET
    reply_to: Replies | UnsetType | None = UNSET
    variables: Variables | UnsetType | None = UNSET

    def fields(self) -> dict[str, Any]:
        """Return the other fields that are named."""
        names = ("name", "from_", "subject", "reply_to", "variables")
        return {name: getattr(self, name) for name in names if getattr(self, name) is not UNSET}


class ShownDocument(Struct, kw_only=True):
    object: Literal["template_document"]
    template_id: UUID
    revision: str
    document: DocumentJson
    html: str
    text: str | None


class ShownVersion(Struct, kw_only=True):
    object: Literal["template_version"]
    id: UUID
    subject: str | None
    size: int
    is_draft: bool
    is_published: bool
    created_at: DatabaseTime
    published_at: DatabaseTime | None


class VersionList(Struct, kw_only=True):
    object: Literal["list"]
    data: list[ShownVersion]


def shown(document: TemplateDocument) -> ShownDocument:
    content = document.template.content
    return ShownDocument(
        object="template_document",
        template_id=document.template.id,
        revision=document.revision,
        document=builtins_of(document.document),
        html=content.html,
        text=content.text,
    )


def version(row: ListedVersion) -> ShownVersion:
    return from_row(ShownVersion, row, object="template_version", size=row.octets)
