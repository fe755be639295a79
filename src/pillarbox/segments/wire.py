"""Shapes of the segments endpoints (segments.md sections 1 and 2); field order is the contract's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal
from uuid import UUID

from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from pillarbox.contacts.conditions.parsing import condition_of
from pillarbox.kernel.http.schemas import AnObject, shown_as
from pillarbox.kernel.wire.fields import parse, read_by
from pillarbox.kernel.wire.instants import DatabaseTime
from pillarbox.kernel.wire.shapes import from_row
from pillarbox.segments.changes import SegmentChange
from pillarbox.segments.queries import Segment

Name = Annotated[str, Meta(max_length=255, extra={"trimmed": True})]


Conditions = Annotated[Any, shown_as(AnObject), read_by(condition_of)]
"""A condition of contacts as rules of automations have it (segments.md section 3)."""

ShownConditions = Annotated[Raw, shown_as(AnObject)]


class NamedSegment(Struct, kw_only=True):
    """The name of a segment with members of its own."""

    name: Name


class NewSegment(NamedSegment, kw_only=True):
    """With `conditions` those contacts that fit them are in it."""

    conditions: Conditions | None = None


class ChangedSegment(Struct, kw_only=True):
    """The name is required where no conditions are given."""

    min_properties: ClassVar[int] = 1

    name: Name | None = None
    conditions: Conditions | None = None

    @staticmethod
    def check_body(body: Mapping[str, Any]) -> None:
        if body.get("conditions") is None:
            parse(NamedSegment, body)


class SegmentCreated(Struct, kw_only=True):
    object: Literal["segment"]
    id: UUID
    name: str


class SegmentsSegmentItem(Struct, kw_only=True):
    """`conditions` is there where the segment is defined by them."""

    id: UUID
    name: str
    created_at: DatabaseTime
    conditions: ShownConditions | UnsetType = UNSET


class FullSegment(Struct, kw_only=True):
    object: Literal["segment"]
    id: UUID
    name: str
    created_at: DatabaseTime
    conditions: ShownConditions | UnsetType = UNSET


class SegmentsSegmentRef(Struct, kw_only=True):
    object: Literal["segment"]
    id: UUID


class SegmentDeleted(Struct, kw_only=True):
    object: Literal["segment"]
    id: UUID
    deleted: Literal[True]


def item(segment: Segment) -> SegmentsSegmentItem:
    return from_row(SegmentsSegmentItem, segment, conditions=_shown(segment.conditions))


def full(segment: Segment) -> FullSegment:
    return from_row(FullSegment, segment, object="segment", conditions=_shown(segment.conditions))


def _shown(conditions: str | None) -> Raw | UnsetType:
    return UNSET if conditions is None else Raw(conditions.encode())


def change_of(changed: ChangedSegment) -> SegmentChange:
    return SegmentChange(changed.name or None, changed.conditions)
