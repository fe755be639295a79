"""Shapes of the broadcasts endpoints (broadcasts.md sections 1 and 3); field order is the contract's."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from pillarbox.broadcasts.content import (
    MOST_NAME,
    MOST_PREVIEW,
    MOST_REPLY_TO,
    MOST_SUBJECT,
)
from pillarbox.broadcasts.queries import Broadcast, ListedBroadcast
from pillarbox.broadcasts.statuses import Status
from pillarbox.emails.requests.schedule import LONGEST as LONGEST_SCHEDULE
from pillarbox.kernel.http.schemas import shown_as
from pillarbox.kernel.wire.instants import DatabaseTime, database_style

Name = Annotated[str, Meta(max_length=MOST_NAME)]
Subject = Annotated[str, Meta(max_length=MOST_SUBJECT)]
Preview = Annotated[str, Meta(max_length=MOST_PREVIEW)]
ReplyTo = str | Annotated[list[str], Meta(max_length=MOST_REPLY_TO)]
When = Annotated[str, Meta(max_length=LONGEST_SCHEDULE)]
ShownStatus = Annotated[str, shown_as(Status)]


class NewBroadcast(Struct, kw_only=True):
    """`audience_id` is another name of `segment_id`. One of `html` and `text` must not be empty."""

    segment_id: UUID | None = None
    audience_id: UUID | None = None
    from_: str = msgspec.field(name="from")
    subject: Subject
    html: str | None = None
    text: str | None = None
    name: Name | None = None
    reply_to: ReplyTo | None = None
    preview_text: Preview | None = None
    topic_id: UUID | None = None
    send: bool = False
    scheduled_at: When | None = None


class ChangedBroadcast(Struct, kw_only=True):
    """Null clears what may be absent."""

    segment_id: UUID | UnsetType = UNSET
    audience_id: UUID | UnsetType = UNSET
    from_: str | UnsetType = msgspec.field(name="from", default=UNSET)
    subject: Subject | UnsetType = UNSET
    html: str | UnsetType | None = UNSET
    text: str | UnsetType | None = UNSET
    name: Name | UnsetType | None = UNSET
    reply_to: ReplyTo | UnsetType | None = UNSET
    preview_text: Preview | UnsetType | None = UNSET
    topic_id: UUID | UnsetType | None = UNSET


class SendBroadcast(Struct):
    scheduled_at: When | None = None


class CreatedBroadcast(Struct):
    id: UUID
    object: Literal["broadcast"]


class BroadcastId(Struct):
    id: UUID


class BroadcastRef(Struct):
    object: Literal["broadcast"]
    id: UUID


class BroadcastDeleted(Struct):
    object: Literal["broadcast"]
    id: UUID
    deleted: Literal[True]


class BroadcastItem(Struct):
    id: UUID
    name: str | None
    audience_id: UUID | None
    segment_id: UUID | None
    status: ShownStatus
    created_at: DatabaseTime
    scheduled_at: DatabaseTime | None
    sent_at: DatabaseTime | None
    topic_id: UUID | None


class FullBroadcast(Struct):
    object: Literal["broadcast"]
    id: UUID
    name: str | None
    audience_id: UUID | None
    segment_id: UUID | None
    from_: str = msgspec.field(name="from")
    subject: str
    reply_to: list[str] | None
    preview_text: str | None
    status: ShownStatus
    created_at: DatabaseTime
    scheduled_at: DatabaseTime | None
    sent_at: DatabaseTime | None
    text: str | None
    html: str | None
    topic_id: UUID | None


def item(row: ListedBroadcast) -> BroadcastItem:
    return BroadcastItem(
        row.id,
        row.name,
        row.segment_id,
        row.segment_id,
        row.status,
        database_style(row.created_at),
        _time(row.scheduled_at),
        _time(row.sent_at),
        row.topic_id,
    )


def full(row: Broadcast) -> FullBroadcast:
    content = row.content
    return FullBroadcast(
        "broadcast",
        row.id,
        content.name,
        content.segment_id,
        content.segment_id,
        content.sender,
        content.subject,
        None if content.reply_to is None else list(content.reply_to),
        content.preview_text,
        row.status,
        database_style(row.created_at),
        _time(row.scheduled_at),
        _time(row.sent_at),
        content.text,
        content.html,
        content.topic_id,
    )


def _time(instant: datetime | None) -> str | None:
    return None if instant is None else database_style(instant)
