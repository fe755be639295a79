"""Shapes of the audiences endpoints (audiences.md); a list has the items of a list of segments."""

from __future__ import annotations

from typing import Literal
from uuid import UUID

from msgspec import Struct

from pillarbox.kernel.wire.instants import DatabaseTime
from pillarbox.kernel.wire.shapes import from_row
from pillarbox.segments.queries import Segment


class AudienceCreated(Struct, kw_only=True):
    object: Literal["audience"]
    id: UUID
    name: str


class FullAudience(Struct, kw_only=True):
    object: Literal["audience"]
    id: UUID
    name: str
    created_at: DatabaseTime


class AudienceRef(Struct, kw_only=True):
    object: Literal["audience"]
    id: UUID


class AudienceDeleted(Struct, kw_only=True):
    object: Literal["audience"]
    id: UUID
    deleted: Literal[True]


class ContactLeft(Struct, kw_only=True):
    """`contact` is what the path named."""

    object: Literal["contact"]
    contact: str
    deleted: Literal[True]


def full(segment: Segment) -> FullAudience:
    return from_row(FullAudience, segment, object="audience")
