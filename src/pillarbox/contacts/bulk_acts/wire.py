"""Shapes of acts on many contacts (contacts.md section 9); field order is the contract's."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Final, Literal
from uuid import UUID

from msgspec import Meta, Struct

from pillarbox.contacts.bulk_acts.acts import BulkSelection
from pillarbox.contacts.bulk_acts.queries import BulkAct, BulkKind, BulkStatus
from pillarbox.contacts.conditions.filtering import ContactFilter
from pillarbox.contacts.conditions.filters_on_wire import condition_in_segment, words_of
from pillarbox.contacts.conditions.parsing import condition_of
from pillarbox.kernel.http.schemas import AnObject, shown_as
from pillarbox.kernel.wire.fields import read_by
from pillarbox.kernel.wire.instants import DatabaseTime
from pillarbox.kernel.wire.problems import Invalid, MissingField
from pillarbox.kernel.wire.shapes import from_row

MOST_CHOSEN: Final = 1000
WITH_SEGMENT: Final = ("add_to_segment", "remove_from_segment")


class NewBulkActBody(Struct, kw_only=True):
    """Either `contacts`, or a filter: `all`, `conditions`, `search`, `in_segment`."""

    action: BulkKind
    segment_id: UUID | None = None
    contacts: Annotated[list[UUID], Meta(min_length=1, max_length=MOST_CHOSEN)] | None = None
    all: bool | None = None
    conditions: Annotated[Any, shown_as(AnObject), read_by(condition_of)] | None = None
    search: str | None = None
    in_segment: UUID | None = None


class BulkActRef(Struct, kw_only=True):
    object: Literal["bulk_act"]
    id: UUID


class FullBulkAct(Struct, kw_only=True):
    """`total` is how many contacts there were when it was asked for."""

    object: Literal["bulk_act"]
    id: UUID
    action: BulkKind
    segment_id: UUID | None
    status: BulkStatus
    total: int | None
    done: int
    changed: int
    reason: str | None
    created_at: DatabaseTime
    ended_at: DatabaseTime | None


def selection_of(body: NewBulkActBody, conditions: Mapping[UUID, Any], now: datetime) -> BulkSelection:
    """Return the contacts that a body names; 422 where it names none, or both kinds. `conditions` are those
    of the segment that it names."""
    is_filtered = bool(body.all or body.conditions is not None or body.search or body.in_segment)
    if body.contacts is None and not is_filtered:
        raise MissingField("contacts")
    if body.contacts is not None and is_filtered:
        raise Invalid("Use either `contacts`, or `all`, `conditions`, `search` and `in_segment`.")
    if body.action in WITH_SEGMENT and body.segment_id is None:
        raise MissingField("segment_id")
    chosen = None if body.contacts is None else list(dict.fromkeys(body.contacts))
    condition = condition_in_segment(body.conditions, body.in_segment, conditions)
    return BulkSelection(chosen, ContactFilter(now, condition, words_of(body.search, "search")))


def shown(bulk_act: BulkAct) -> FullBulkAct:
    return from_row(FullBulkAct, bulk_act, object="bulk_act", action=bulk_act.kind)
