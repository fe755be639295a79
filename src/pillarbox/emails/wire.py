"""Shapes of emails on the wire (emails.md sections 1, 4 and 5); field order is the contract's."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from pillarbox.emails.queries import ListedEmail, StoredAttachment, StoredEmail
from pillarbox.kernel.instants import database_style, iso_style
from pillarbox.timeline.history import Line
from pillarbox.timeline.rules import Detail

NULL = Raw(b"null")


class TagIn(Struct):
    name: str
    value: str


class AttachmentIn(Struct):
    """`content` is base64 text, an array of bytes, or a Node buffer; `path` is fetched later."""

    content: str | list[int] | dict[str, Any] | None = None
    path: str | None = None
    filename: str | None = None
    content_type: str | None = None
    content_id: str | None = None


class TemplateIn(Struct):
    id: str
    variables: dict[str, str | float] | None = None


class SendEmail(Struct):
    """The send request, for the OpenAPI document; `parse.outgoing` is what reads it."""

    from_: str = msgspec.field(name="from")
    to: str | list[str]
    subject: str
    cc: str | list[str] | None = None
    bcc: str | list[str] | None = None
    reply_to: str | list[str] | None = None
    html: str | None = None
    text: str | None = None
    headers: dict[str, str] | None = None
    attachments: list[AttachmentIn] | None = None
    tags: list[TagIn] | None = None
    scheduled_at: str | None = None
    topic_id: UUID | None = None
    template: TemplateIn | None = None


class Reschedule(Struct):
    scheduled_at: str


class ShareIn(Struct):
    expires_in: str | None = None


class EmailId(Struct):
    id: UUID


class EmailRef(Struct):
    id: UUID
    object: Literal["email"] = "email"


class BatchError(Struct):
    index: int
    message: str


class BatchOut(Struct):
    data: list[EmailId]
    errors: list[BatchError] | UnsetType = UNSET


class ListItem(Struct):
    id: UUID
    message_id: str
    to: Raw
    from_: str = msgspec.field(name="from")
    created_at: str
    subject: str
    bcc: Raw
    cc: Raw
    reply_to: Raw
    last_event: str
    scheduled_at: str | None


class Email(Struct):
    object: str
    id: UUID
    message_id: str
    to: Raw
    from_: str = msgspec.field(name="from")
    created_at: str
    subject: str
    html: str | None
    text: str | None
    bcc: Raw
    cc: Raw
    reply_to: Raw
    last_event: str
    scheduled_at: str | None
    tags: Raw
    topic_id: UUID | None


class AttachmentItem(Struct):
    id: UUID
    filename: str
    size: int
    content_type: str
    content_disposition: str
    download_url: str
    expires_at: str
    content_id: str | UnsetType = UNSET


class Event(Struct):
    """One step of an email's history (an extension of ours)."""

    id: UUID
    created_at: str
    event: str
    recipient: str | None
    host: str | None
    reply: str | None
    reason: str | None
    next_attempt_at: str | None
    attempt: int | None
    bounce: dict[str, str] | None
    uncertain: bool


class SharedLink(Struct):
    object: str
    id: UUID
    url: str


def listed(row: ListedEmail) -> ListItem:
    return ListItem(
        row.id,
        row.message_id,
        _raw(row.to_list),
        row.sender,
        database_style(row.created_at),
        row.subject,
        _raw(row.bcc_list),
        _raw(row.cc_list),
        _raw(row.reply_to_list),
        row.last_event,
        _time(row.scheduled_at),
    )


def email(row: StoredEmail) -> Email:
    return Email(
        "email",
        row.id,
        row.message_id,
        _raw(row.to_list),
        row.sender,
        database_style(row.created_at),
        row.subject,
        row.html,
        row.text,
        _raw(row.bcc_list),
        _raw(row.cc_list),
        _raw(row.reply_to_list),
        row.last_event,
        _time(row.scheduled_at),
        _raw(row.tags or "[]"),
        row.topic_id,
    )


def attachment(row: StoredAttachment, url: str, expires_at: datetime) -> dict[str, Any]:
    """In the contract's order; `content_id` is left out where there is none."""
    shape: dict[str, Any] = {
        "id": row.id,
        "filename": row.filename,
        "size": row.size,
        "content_type": row.content_type,
        "content_disposition": "inline" if row.cid else "attachment",
    }
    if row.cid:
        shape["content_id"] = row.cid
    return {**shape, "download_url": url, "expires_at": iso_style(expires_at)}


def event(row: Line) -> Event:
    detail = msgspec.json.decode(row.detail, type=Detail) if row.detail else Detail()
    bounce = detail.bounce
    return Event(
        row.id,
        database_style(row.at),
        row.kind,
        row.recipient,
        detail.host,
        detail.reply,
        detail.reason or detail.suppressed,
        _time(detail.next_attempt_at),
        detail.attempt,
        {"type": bounce.type, "subType": bounce.sub_type} if bounce else None,
        detail.uncertain,
    )


def _raw(text: str | None) -> Raw:
    return NULL if text is None else Raw(text.encode())


def _time(at: datetime | None) -> str | None:
    return None if at is None else database_style(at)
