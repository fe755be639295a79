"""Shapes of the topics endpoints (topics.md sections 1 and 3); field order is the contract's."""

from __future__ import annotations

from typing import Annotated, Literal
from uuid import UUID

from msgspec import UNSET, Meta, Struct, UnsetType

from pillarbox.kernel.http.schemas import shown_as
from pillarbox.kernel.wire.instants import DatabaseTime, database_style
from pillarbox.topics.queries import TopicRow

Choice = Literal["opt_in", "opt_out"]
Visibility = Literal["public", "private"]
Name = Annotated[str, Meta(max_length=50, extra={"trimmed": True})]
OtherName = Annotated[str, Meta(min_length=1, max_length=50, extra={"trimmed": True})]
Description = Annotated[str, Meta(max_length=200)]
ShownChoice = Annotated[str, shown_as(Choice)]
ShownVisibility = Annotated[str, shown_as(Visibility)]


class NewTopic(Struct):
    name: Name
    default_subscription: Choice
    description: Description | None = None
    visibility: Visibility = "private"


class ChangedTopic(Struct):
    """`default_subscription` may be named, and must be what it is."""

    name: OtherName | UnsetType = UNSET
    description: Description | UnsetType | None = UNSET
    visibility: Visibility | UnsetType = UNSET
    default_subscription: Choice | UnsetType = UNSET


class TopicRef(Struct):
    object: Literal["topic"]
    id: UUID


class FullTopic(Struct):
    object: Literal["topic"]
    id: UUID
    name: str
    description: str | None
    default_subscription: ShownChoice
    visibility: ShownVisibility
    created_at: DatabaseTime


class TopicsTopicItem(Struct):
    id: UUID
    name: str
    description: str | None
    default_subscription: ShownChoice
    visibility: ShownVisibility
    created_at: DatabaseTime


class TopicDeleted(Struct):
    object: Literal["topic"]
    id: UUID
    deleted: Literal[True]


def item(topic: TopicRow) -> TopicsTopicItem:
    return TopicsTopicItem(
        topic.id,
        topic.name,
        topic.description,
        topic.default_subscription,
        topic.visibility,
        database_style(topic.created_at),
    )


def full(topic: TopicRow) -> FullTopic:
    shown = item(topic)
    return FullTopic(
        "topic",
        shown.id,
        shown.name,
        shown.description,
        shown.default_subscription,
        shown.visibility,
        shown.created_at,
    )
