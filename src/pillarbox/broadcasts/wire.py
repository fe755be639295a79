"""Shapes of the broadcasts endpoints (broadcasts.md sections 1 and 3); field order is the contract's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal
from uuid import UUID

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType, structs

from pillarbox.broadcasts import content
from pillarbox.broadcasts.content import (
    MOST_NAME,
    MOST_PREVIEW,
    MOST_REPLY_TO,
    MOST_SUBJECT,
    BroadcastContent,
)
from pillarbox.broadcasts.plans.wire import NewPlan
from pillarbox.broadcasts.queries import Broadcast, ListedBroadcast
from pillarbox.broadcasts.statuses import Status
from pillarbox.emails.wire import When
from pillarbox.kernel.http.schemas import shown_as
from pillarbox.kernel.wire.fields import Rules, read_by
from pillarbox.kernel.wire.instants import DatabaseTime
from pillarbox.kernel.wire.problems import InvalidField
from pillarbox.kernel.wire.shapes import from_row

Segment = Annotated[UUID, read_by(content.segment)]
Sender = Annotated[str, read_by(content.sender)]
Subject = Annotated[str, Meta(max_length=MOST_SUBJECT), read_by(content.subject)]
Body = Annotated[str, read_by(content.body)]
Name = Annotated[str, Meta(max_length=MOST_NAME), read_by(content.name)]
GivenReplyTo = str | Annotated[list[str], Meta(max_length=MOST_REPLY_TO)]
ReplyTo = Annotated[tuple[str, ...], shown_as(GivenReplyTo), read_by(content.reply_to)]
Preview = Annotated[str, Meta(max_length=MOST_PREVIEW), read_by(content.preview)]
Topic = Annotated[UUID, read_by(content.topic)]
ShownStatus = Annotated[str, shown_as(Status)]


class NewBroadcast(Struct, kw_only=True):
    """`audience_id` is another name of `segment_id`. One of `html` and `text` must not be empty."""

    rules: ClassVar[Rules] = {"audience_id": content.needed_segment, "text": content.needed_bodies}

    segment_id: Segment | None = None
    audience_id: Segment | None = None
    from_: Sender = msgspec.field(name="from")
    subject: Subject
    html: Body | None = None
    text: Body | None = None
    name: Name | None = None
    reply_to: ReplyTo | None = None
    preview_text: Preview | None = None
    topic_id: Topic | None = None
    send: bool = False
    scheduled_at: When | None = None
    plan: NewPlan | None = None

    def broadcast_content(self) -> BroadcastContent:
        return BroadcastContent(
            segment_id=self.segment_id,
            sender=self.from_,
            subject=self.subject,
            html=self.html,
            text=self.text,
            name=self.name,
            reply_to=self.reply_to,
            preview_text=self.preview_text,
            topic_id=self.topic_id,
        )


class ChangedBroadcast(Struct, kw_only=True):
    """Null clears what may be absent."""

    rules: ClassVar[Rules] = {"audience_id": content.one_segment, "text": content.bodies_of_both}

    segment_id: Segment | UnsetType = UNSET
    audience_id: Segment | UnsetType = UNSET
    from_: Sender | UnsetType = msgspec.field(name="from", default=UNSET)
    subject: Subject | UnsetType = UNSET
    html: Body | UnsetType | None = UNSET
    text: Body | UnsetType | None = UNSET
    name: Name | UnsetType | None = UNSET
    reply_to: ReplyTo | UnsetType | None = UNSET
    preview_text: Preview | UnsetType | None = UNSET
    topic_id: Topic | UnsetType | None = UNSET

    @staticmethod
    def check_body(body: Mapping[str, Any]) -> None:
        for field in ("segment_id", "audience_id"):
            if field in body and body[field] in (None, ""):
                raise InvalidField(field, "It cannot be cleared.")

    def changes(self) -> dict[str, Any]:
        """Return the fields that are to change, by their names in a content."""
        given = {field: value for field, value in structs.asdict(self).items() if value is not UNSET}
        return {"sender" if field == "from_" else field: value for field, value in given.items()}


class SendBroadcast(Struct, kw_only=True):
    scheduled_at: When | None = None


class CreatedBroadcast(Struct, kw_only=True):
    id: UUID
    object: Literal["broadcast"]


class BroadcastId(Struct, kw_only=True):
    id: UUID


class BroadcastRef(Struct, kw_only=True):
    object: Literal["broadcast"]
    id: UUID


class BroadcastDeleted(Struct, kw_only=True):
    object: Literal["broadcast"]
    id: UUID
    deleted: Literal[True]


class BroadcastItem(Struct, kw_only=True):
    id: UUID
    name: str | None
    audience_id: UUID | None
    segment_id: UUID | None
    status: ShownStatus
    created_at: DatabaseTime
    scheduled_at: DatabaseTime | None
    sent_at: DatabaseTime | None
    topic_id: UUID | None


class FullBroadcast(Struct, kw_only=True):
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
    return from_row(BroadcastItem, row, audience_id=row.segment_id)


def full(row: Broadcast) -> FullBroadcast:
    shown = row.content
    return from_row(
        FullBroadcast,
        row,
        object="broadcast",
        name=shown.name,
        audience_id=shown.segment_id,
        segment_id=shown.segment_id,
        from_=shown.sender,
        subject=shown.subject,
        reply_to=None if shown.reply_to is None else list(shown.reply_to),
        preview_text=shown.preview_text,
        text=shown.text,
        html=shown.html,
        topic_id=shown.topic_id,
    )
