"""Shapes of the endpoints of templates (templates.md 1 to 4); field order is the contract's."""

from __future__ import annotations

from typing import Annotated, Literal
from uuid import UUID

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from pillarbox.kernel.http.schemas import shown_as
from pillarbox.kernel.wire.instants import DatabaseTime
from pillarbox.kernel.wire.shapes import from_row
from pillarbox.templates.content import MOST_REPLIES, MOST_SUBJECT
from pillarbox.templates.queries import ListedTemplate, Template
from pillarbox.templates.variables import KEY_REASON, Kind, Scalar, Variable

MOST_VARIABLES = 50

Status = Literal["draft", "published"]
Name = Annotated[str, Meta(max_length=255, extra={"trimmed": True})]
OtherName = Annotated[str, Meta(min_length=1, max_length=255, extra={"trimmed": True})]
Alias = Annotated[
    str,
    Meta(
        pattern=r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}",
        extra={
            "problem": "validation_error",
            "reason": "Use up to 100 ASCII letters, digits, `.`, `_` and `-`, a letter or digit first.",
        },
    ),
]
Subject = Annotated[str, Meta(max_length=MOST_SUBJECT)]
Replies = str | Annotated[list[str], Meta(min_length=1, max_length=MOST_REPLIES)]
Key = Annotated[
    str,
    Meta(pattern=r"[A-Za-z0-9_]{1,50}", extra={"problem": "validation_error", "reason": KEY_REASON}),
]


class NewVariable(Struct, kw_only=True):
    key: Key
    type: Kind
    fallback_value: Scalar | None = None


Variables = Annotated[list[NewVariable], Meta(max_length=MOST_VARIABLES)]


class NewTemplate(Struct, kw_only=True):
    name: Name
    html: Annotated[str, Meta(extra={"empty": True})]
    alias: Alias | None = None
    from_: str | None = msgspec.field(name="from", default=None)
    subject: Subject | None = None
    reply_to: Replies | None = None
    text: str | None = None
    variables: Variables | None = None


class ChangedTemplate(Struct, kw_only=True):
    """What is not named stays; null takes away."""

    name: OtherName | UnsetType = UNSET
    html: str | UnsetType = UNSET
    alias: Alias | UnsetType | None = UNSET
    from_: str | UnsetType | None = msgspec.field(name="from", default=UNSET)
    subject: Subject | UnsetType | None = UNSET
    reply_to: Replies | UnsetType | None = UNSET
    text: str | UnsetType | None = UNSET
    variables: Variables | UnsetType | None = UNSET


class TemplateRef(Struct, kw_only=True):
    id: UUID
    object: Literal["template"]


class TemplateDeleted(Struct, kw_only=True):
    object: Literal["template"]
    id: UUID
    deleted: Literal[True]


class ShownVariable(Struct, kw_only=True):
    id: UUID
    key: str
    type: Annotated[str, shown_as(Kind)]
    fallback_value: Scalar | None
    created_at: DatabaseTime
    updated_at: DatabaseTime


class FullTemplate(Struct, kw_only=True):
    object: Literal["template"]
    id: UUID
    current_version_id: UUID
    name: str
    alias: str | None
    from_: str | None = msgspec.field(name="from")
    subject: str | None
    reply_to: list[str] | None
    html: str
    text: str | None
    variables: list[ShownVariable]
    created_at: DatabaseTime
    updated_at: DatabaseTime
    status: Annotated[str, shown_as(Status)]
    published_at: DatabaseTime | None
    has_unpublished_versions: bool


class TemplateItem(Struct, kw_only=True):
    id: UUID
    name: str
    status: Annotated[str, shown_as(Status)]
    published_at: DatabaseTime | None
    created_at: DatabaseTime
    updated_at: DatabaseTime
    alias: str | None


def ref(template_id: UUID) -> TemplateRef:
    return TemplateRef(id=template_id, object="template")


def item(template: ListedTemplate) -> TemplateItem:
    return from_row(TemplateItem, template)


def full(template: Template) -> FullTemplate:
    content = template.content
    return from_row(
        FullTemplate,
        template,
        object="template",
        current_version_id=template.version_id,
        from_=content.sender,
        subject=content.subject,
        reply_to=None if content.reply_to is None else list(content.reply_to),
        html=content.html,
        text=content.text,
        variables=[_variable(variable) for variable in content.variables],
        has_unpublished_versions=template.has_draft,
    )


def _variable(variable: Variable) -> ShownVariable:
    return from_row(ShownVariable, variable)
