"""Shapes of the topics endpoints (topics.md sections 1 and 3); field order is the contract's."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Literal
from uuid import UUID

from msgspec import UNSET, Meta, Struct, UnsetType

from pillarbox.kernel.http.schemas import shown_as
from pillarbox.kernel.wire.instants import DatabaseTime
from pillarbox.kernel.wire.shapes import from_row

Choice = Literal["opt_in", "opt_out"]
Visibility = Literal["public", "private"]
Name = Annotated[str, Meta(max_length=50, extra={"trimmed": True})]
OtherName = Annotated[str, Meta(min_length=1, max_length=50, extra={"trimmed": True})]
Description = Annotated[str, Meta(max_length=200)]
ShownChoice = Annotated[str, shown_as(Choice)]
ShownVisibility = Annotated[str, shown_as(Visibility)]


class NewTopic(Struct, kw_only=True):
    name: Name
    default_subscription: Choice
    description: Description | None = None
    visibility: Visibility = "private"


class ChangedTopic(Struct, kw_only=True):
    """`default_subscription` may be named, and must be what it is."""

    name: OtherName | UnsetType = UNSET
    description: Description | UnsetType | None = UNSET
    visibility: Visibility | UnsetType = UNSET
    default_subscription: Choice | UnsetType = UNSET


class TopicRef(Struct, kw_only=True):
    object: Literal["topic"]
    id: UUID


class TopicFields(Struct, kw_only=True):
    """The first fields of a topic in answers and events."""

    id: UUID
    name: str
    description: str | None
    default_subscription: ShownChoice


class TopicsTopicItem(TopicFields, kw_only=True):
    visibility: ShownVisibility
    created_at: DatabaseTime


class FullTopic(TopicsTopicItem, kw_only=True, tag_field="object", tag="topic"):
    pass


class TopicDeleted(Struct, kw_only=True):
    object: Literal["topic"]
    id: UUID
    deleted: Literal[True]


item = partial(from_row, TopicsTopicItem)
full = partial(from_row, FullTopic)
