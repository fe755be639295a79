"""Shapes of the endpoints of contact properties (contacts.md 4); field order is the contract's."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal
from uuid import UUID

from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from pillarbox.contact_properties.definitions import PropertyDefinition
from pillarbox.kernel.http.schemas import shown_as
from pillarbox.kernel.wire.instants import DatabaseTime, database_style
from pillarbox.kernel.wire.shapes import from_row

KEY_REASON = "Use 1 to 50 letters, digits and underscores."

Key = Annotated[str, Meta(pattern="^[A-Za-z0-9_]{1,50}$", extra={"reason": KEY_REASON})]
Value = str | float | bool
Shown = Annotated[Raw, shown_as(Value | None)]
Type = Annotated[str, shown_as(Literal["string", "number", "boolean"])]


class NewProperty(Struct, kw_only=True):
    """`fallback_value` is of the type of the property."""

    key: Key
    type: Literal["string", "number"]
    fallback_value: Value | None = None


class ChangedProperty(Struct, kw_only=True):
    """Null clears the fallback. `key` and `type` may only be what they are."""

    min_properties: ClassVar[int] = 1

    fallback_value: Value | UnsetType | None = UNSET
    key: Annotated[Any, Meta(extra_json_schema={"type": "string"})] = None
    type: Annotated[Any, Meta(extra_json_schema={"type": "string"})] = None


class PropertyRef(Struct, kw_only=True):
    object: Literal["contact_property"]
    id: UUID


class DeletedProperty(Struct, kw_only=True):
    object: Literal["contact_property"]
    deleted: Literal[True]
    id: UUID


class PropertyItem(Struct, kw_only=True):
    id: UUID
    key: str
    type: Type
    fallback_value: Shown
    created_at: DatabaseTime


class FullProperty(Struct, kw_only=True):
    object: Literal["contact_property"]
    id: UUID
    key: str
    type: Type
    fallback_value: Shown
    created_at: DatabaseTime


def item(property_definition: PropertyDefinition) -> PropertyItem:
    return from_row(PropertyItem, property_definition, fallback_value=property_definition.fallback)


def full(property_definition: PropertyDefinition) -> FullProperty:
    at = database_style(property_definition.created_at)
    return from_row(
        FullProperty,
        property_definition,
        object="contact_property",
        fallback_value=property_definition.fallback,
        created_at=at,
    )
