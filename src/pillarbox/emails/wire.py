"""Shapes of emails on the wire (emails.md sections 1, 4 and 5); field order is the contract's."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Annotated, Any, Literal, TypeVar
from uuid import UUID

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from pillarbox.emails.insights.rules import LEVELS, RULES, Insight
from pillarbox.emails.queries import EmailListRow, EmailRow, StoredAttachment
from pillarbox.emails.requests import attachment_input
from pillarbox.emails.requests.parse import (
    MOST_BODY,
    MOST_HEADERS,
    MOST_RECIPIENTS,
    MOST_SUBJECT,
    MOST_TAGS,
    string,
)
from pillarbox.emails.requests.schedule import LONGEST as LONGEST_SCHEDULE
from pillarbox.emails.search.filters import FoundEmail
from pillarbox.emails.sharing.share import DEFAULT as DEFAULT_LIFETIME
from pillarbox.emails.sharing.share import lifetime
from pillarbox.kernel.http.schemas import one_of, shown_as
from pillarbox.kernel.wire.fields import read_by
from pillarbox.kernel.wire.instants import DatabaseTime, IsoTime, database_style, iso_style
from pillarbox.kernel.wire.shapes import from_row
from pillarbox.mail.message.headers import LONGEST_VALUE
from pillarbox.mail.reports.replies import BounceType, SubType
from pillarbox.timeline.history_queries import HistoryEvent
from pillarbox.timeline.rules import STATES, EventDetail, EventKind

NULL = Raw(b"null")

MOST_IN_BATCH = 100
STRICT, PERMISSIVE = "strict", "permissive"


Addresses = str | Annotated[list[str], Meta(max_length=MOST_RECIPIENTS)]
Mailboxes = Annotated[Raw, shown_as(list[str])]
SomeMailboxes = Annotated[Raw, shown_as(list[str] | None)]
State = Annotated[str, one_of(STATES)]
TagPart = Annotated[str, Meta(pattern="^[A-Za-z0-9_-]{1,256}$")]


When = Annotated[str, Meta(max_length=LONGEST_SCHEDULE), read_by(string)]
"""The text of a time; what it means depends on the clock (`requests.parse.instant`)."""

Expiry = Annotated[str, Meta(examples=["10m", "2 hours", "1h 30m"])]


class TagIn(Struct, kw_only=True):
    name: TagPart
    value: TagPart


class Buffer(Struct, kw_only=True):
    """Bytes as older Node clients write them."""

    type: Literal["Buffer"]
    data: list[Annotated[int, Meta(ge=0, le=255)]]


NAME = {"type": "string", "maxLength": attachment_input.MOST_NAME}
Filename = Annotated[Any, Meta(extra_json_schema={"anyOf": [NAME, {"const": False}, {"type": "null"}]})]
"""False is the same as absent."""


class AttachmentIn(Struct, kw_only=True):
    """`content` or `path` must be there; where both are, `content` counts. `path` is fetched later.
    `inline_content_id` is another name of `content_id`."""

    content: str | list[Annotated[int, Meta(ge=0, le=255)]] | Buffer | None = None
    path: Annotated[str, Meta(max_length=attachment_input.MOST_URL)] | None = None
    filename: Filename = None
    content_type: str | None = None
    content_id: Annotated[str, Meta(max_length=attachment_input.MOST_CID)] | None = None
    inline_content_id: Annotated[str, Meta(max_length=attachment_input.MOST_CID)] | None = None


class TemplateIn(Struct, kw_only=True):
    id: str
    variables: Annotated[Any, Meta(extra_json_schema={"type": ["object", "null"]})] = None


class BatchedEmail(Struct, kw_only=True):
    """An email of a batch. `from`, `subject` and one of `html` and `text` may only lack with `template`."""

    from_: str | None = msgspec.field(name="from", default=None)
    to: (
        Annotated[str, Meta(min_length=1)]
        | Annotated[list[str], Meta(min_length=1, max_length=MOST_RECIPIENTS)]
    )
    subject: Annotated[str, Meta(max_length=MOST_SUBJECT)] | None = None
    cc: Addresses | None = None
    bcc: Addresses | None = None
    reply_to: Addresses | None = None
    html: Annotated[str, Meta(max_length=MOST_BODY)] | None = None
    text: Annotated[str, Meta(max_length=MOST_BODY)] | None = None
    headers: (
        Annotated[dict[str, Annotated[str, Meta(max_length=LONGEST_VALUE)]], Meta(max_length=MOST_HEADERS)]
        | None
    ) = None
    tags: Annotated[list[TagIn], Meta(max_length=MOST_TAGS)] | None = None
    scheduled_at: Annotated[str, Meta(max_length=LONGEST_SCHEDULE)] | None = None
    topic_id: UUID | None = None
    template: TemplateIn | None = None


class SendEmail(BatchedEmail, kw_only=True):
    """An email. `from`, `subject` and one of `html` and `text` may only lack with `template`."""

    attachments: Annotated[list[AttachmentIn], Meta(max_length=attachment_input.MOST)] | None = None


Batch = Annotated[list[BatchedEmail], Meta(min_length=1, max_length=MOST_IN_BATCH)]
Validation = Annotated[str, one_of((STRICT, PERMISSIVE))]


class Reschedule(Struct, kw_only=True):
    scheduled_at: When


class ShareIn(Struct, kw_only=True):
    expires_in: Annotated[timedelta, shown_as(Expiry), read_by(lifetime)] = DEFAULT_LIFETIME


class EmailId(Struct, kw_only=True):
    id: UUID


class EmailRef(Struct, kw_only=True):
    object: Literal["email"]
    id: UUID


class BatchError(Struct, kw_only=True):
    index: int
    message: str


class BatchOut(Struct, kw_only=True):
    """`errors` is there with the validation mode `permissive`."""

    data: list[EmailId]
    errors: list[BatchError] | UnsetType = UNSET


class EmailsListItem(Struct, kw_only=True):
    id: UUID
    message_id: str
    to: Mailboxes
    from_: str = msgspec.field(name="from")
    created_at: DatabaseTime
    subject: str
    bcc: SomeMailboxes
    cc: SomeMailboxes
    reply_to: SomeMailboxes
    last_event: State
    scheduled_at: DatabaseTime | None


class EmailList(Struct, kw_only=True):
    """A page of emails. `next` is there where filters were given and more may fit: the value for `after`."""

    object: Literal["list"] = "list"
    has_more: bool
    data: list[EmailsListItem]
    next: UUID | UnsetType = UNSET


class RawEmail(Struct, kw_only=True):
    """A link to the message. `is_original` says that it is kept as it left."""

    object: Literal["email_raw"]
    id: UUID
    is_original: bool
    download_url: str
    expires_at: IsoTime


class Tag(Struct, kw_only=True):
    name: str
    value: str


class EmailsEmail(Struct, kw_only=True):
    object: Literal["email"]
    id: UUID
    message_id: str
    to: Mailboxes
    from_: str = msgspec.field(name="from")
    created_at: DatabaseTime
    subject: str
    html: str | None
    text: str | None
    bcc: SomeMailboxes
    cc: SomeMailboxes
    reply_to: SomeMailboxes
    last_event: State
    scheduled_at: DatabaseTime | None
    tags: Annotated[Raw, shown_as(list[Tag])]
    topic_id: UUID | None


class EmailsAttachmentItem(Struct, kw_only=True):
    """An attachment with its link. `content_id` is left out where there is none."""

    id: UUID
    filename: str
    size: int
    content_type: str
    content_disposition: Literal["inline", "attachment"]
    content_id: str | UnsetType = UNSET
    download_url: str
    expires_at: IsoTime


class EmailsAttachment(EmailsAttachmentItem, kw_only=True, tag_field="object", tag="attachment"):
    """One attachment by itself."""


class EventBounce(Struct, kw_only=True):
    type: Annotated[str, shown_as(BounceType)]
    sub_type: Annotated[str, shown_as(SubType)] = msgspec.field(name="subType")


class Event(Struct, kw_only=True):
    """One step of an email's history (an extension of ours)."""

    id: UUID
    created_at: DatabaseTime
    event: Annotated[str, shown_as(EventKind)]
    recipient: str | None
    host: str | None
    reply: str | None
    reason: str | None
    next_attempt_at: DatabaseTime | None
    attempt: int | None
    bounce: EventBounce | None
    uncertain: bool


class EmailInsight(Struct, kw_only=True):
    """One rule applied to an email."""

    code: Annotated[str, one_of(tuple(RULES))]
    level: Annotated[str, one_of(LEVELS)]
    message: str


class EmailInsights(Struct, kw_only=True):
    """All that may be held against an email (an extension of ours)."""

    object: Literal["email_insights"]
    id: UUID
    insights: list[EmailInsight]


class SharedLink(Struct, kw_only=True):
    object: Literal["email"]
    id: UUID
    url: str


A = TypeVar("A", bound=EmailsAttachmentItem)


def listed(row: EmailListRow | FoundEmail) -> EmailsListItem:
    return EmailsListItem(
        id=row.id,
        message_id=row.message_id,
        to=_raw(row.to_list),
        from_=row.sender,
        created_at=database_style(row.created_at),
        subject=row.subject,
        bcc=_raw(row.bcc_list),
        cc=_raw(row.cc_list),
        reply_to=_raw(row.reply_to_list),
        last_event=row.last_event,
        scheduled_at=_time(row.scheduled_at),
    )


def email(row: EmailRow) -> EmailsEmail:
    return EmailsEmail(
        object="email",
        id=row.id,
        message_id=row.message_id,
        to=_raw(row.to_list),
        from_=row.sender,
        created_at=database_style(row.created_at),
        subject=row.subject,
        html=row.html,
        text=row.text,
        bcc=_raw(row.bcc_list),
        cc=_raw(row.cc_list),
        reply_to=_raw(row.reply_to_list),
        last_event=row.last_event,
        scheduled_at=_time(row.scheduled_at),
        tags=_raw(row.tags or "[]"),
        topic_id=row.topic_id,
    )


def attachment(kind: type[A], row: StoredAttachment, url: str, expires_at: datetime) -> A:
    """Return the attachment as one of a list, or by itself."""
    return kind(
        id=row.id,
        filename=row.filename,
        size=row.size,
        content_type=row.content_type,
        content_disposition="inline" if row.cid else "attachment",
        content_id=row.cid or UNSET,
        download_url=url,
        expires_at=iso_style(expires_at),
    )


def event(row: HistoryEvent) -> Event:
    detail = msgspec.json.decode(row.detail, type=EventDetail) if row.detail else EventDetail()
    bounce = detail.bounce
    return Event(
        id=row.id,
        created_at=database_style(row.at),
        event=row.kind,
        recipient=row.recipient,
        host=detail.host,
        reply=detail.reply,
        reason=detail.reason or detail.suppressed,
        next_attempt_at=_time(detail.next_attempt_at),
        attempt=detail.attempt,
        bounce=EventBounce(type=bounce.type, sub_type=bounce.sub_type) if bounce else None,
        uncertain=detail.uncertain,
    )


def email_insights(email_id: UUID, insights: Sequence[Insight]) -> EmailInsights:
    return EmailInsights(
        object="email_insights",
        id=email_id,
        insights=[from_row(EmailInsight, insight) for insight in insights],
    )


def _raw(text: str | None) -> Raw:
    return NULL if text is None else Raw(text.encode())


def _time(instant: datetime | None) -> str | None:
    return None if instant is None else database_style(instant)
