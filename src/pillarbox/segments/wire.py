"""Shapes of the segments endpoints (segments.md sections 1 and 2); field order is the contract's."""

from __future__ import annotations

from typing import Annotated, Literal
from uuid import UUID

from msgspec import Meta, Struct

from pillarbox.kernel.wire.instants import DatabaseTime
from pillarbox.kernel.wire.shapes import from_row
from pillarbox.segments.queries import Segment

Name = Annotated[str, Meta(max_length=255, extra={"trimmed": True})]


class NamedSegment(Struct, kw_only=True):
    """A new segment, or the new name of one."""

    name: Name


class SegmentCreated(Struct, kw_only=True):
    object: Literal["segment"]
    id: UUID
    name: str


class SegmentsSegmentItem(Struct, kw_only=True):
    id: UUID
    name: str
    created_at: DatabaseTime


class FullSegment(Struct, kw_only=True):
    object: Literal["segment"]
    id: UUID
    name: str
    created_at: DatabaseTime


class SegmentsSegmentRef(Struct, kw_only=True):
    object: Literal["segment"]
    id: UUID


class SegmentDeleted(Struct, kw_only=True):
    object: Literal["segment"]
    id: UUID
    deleted: Literal[True]


def item(segment: Segment) -> SegmentsSegmentItem:
    return from_row(SegmentsSegmentItem, segment)


def full(segment: Segment) -> FullSegment:
    return from_row(FullSegment, segment, object="segment")
