"""Shapes of labels on the wire (inboxes.md sections 2 and 4); field order is the contract's."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal
from uuid import UUID

from msgspec import UNSET, Meta, Struct, UnsetType

from pillarbox.inboxes.labels.colors import Color
from pillarbox.inboxes.labels.queries import Label
from pillarbox.kernel.wire.instants import IsoTime
from pillarbox.kernel.wire.problems import Invalid
from pillarbox.kernel.wire.shapes import from_row

LONGEST_NAME = 64

# Its length counts without the blanks around.
Name = Annotated[
    str, Meta(extra={"trimmed": True}, extra_json_schema={"minLength": 1, "maxLength": LONGEST_NAME})
]


class NewLabel(Struct, kw_only=True):
    """Without a colour it gets one of the palette."""

    name: Name
    color: Color | None = None


class LabelChange(Struct, kw_only=True):
    """At least one of them."""

    min_properties: ClassVar[int] = 1

    name: Name | UnsetType = UNSET
    color: Color | UnsetType = UNSET


class LabelRef(Struct, kw_only=True):
    object: Literal["inbox_label"]
    id: UUID


class LabelDeleted(Struct, kw_only=True):
    object: Literal["inbox_label"]
    id: UUID
    deleted: Literal[True]


class LabelItem(Struct, kw_only=True):
    id: UUID
    name: str
    color: str
    created_at: IsoTime


def ref(label_id: UUID) -> LabelRef:
    return LabelRef(object="inbox_label", id=label_id)


def item(label: Label) -> LabelItem:
    return from_row(LabelItem, label)


def refuse_nothing(change: LabelChange) -> None:
    """Raise a 422 for a change without a field that can change."""
    if change.name is UNSET and change.color is UNSET:
        raise Invalid("Use at least one of `name` and `color`.")
