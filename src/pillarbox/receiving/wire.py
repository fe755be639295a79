"""Shapes of received mail on the wire (receiving.md 1, 2, 4 and 7); field order is the contract's."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from pillarbox.kernel.instants import iso_style
from pillarbox.receiving.queries import ListedEmail, Part, StoredEmail, ToldEmail, ToldPart
from pillarbox.receiving.rows import Parsed

NONE = Raw(b"[]")


class Embedded(Struct):
    """An attachment as the email shows it; the disposition is as in the part."""

    id: UUID
    filename: str | None
    content_type: str
    content_disposition: str | None
    content_id: str | None
    size: int


class RawLink(Struct):
    download_url: str
    expires_at: str


class ListItem(Struct):
    id: UUID
    to: Raw
    from_: str = msgspec.field(name="from")
    created_at: str
    subject: str
    bcc: Raw
    cc: Raw
    reply_to: Raw
    received_for: Raw
    message_id: str
    attachments: list[Embedded]


class Email(Struct):
    object: str
    id: UUID
    to: Raw
    from_: str = msgspec.field(name="from")
    created_at: str
    subject: str
    html: str | None
    html_format: str
    text: str | None
    headers: dict[str, str]
    bcc: Raw
    cc: Raw
    reply_to: Raw
    received_for: Raw
    message_id: str
    raw: RawLink | None
    attachments: list[Embedded]


class AttachmentItem(Struct, kw_only=True):
    """An attachment with its link; what it lacks is left out."""

    id: UUID
    filename: str | UnsetType = UNSET
    size: int
    content_type: str
    content_disposition: str
    content_id: str | UnsetType = UNSET
    download_url: str
    expires_at: str


class ToldAttachment(Struct):
    id: UUID
    filename: str | None
    content_type: str
    content_disposition: str | None
    content_id: str | None


class Told(Struct):
    """The data of `email.received`."""

    email_id: UUID
    created_at: str
    from_: str = msgspec.field(name="from")
    to: Raw
    bcc: Raw
    cc: Raw
    received_for: Raw
    message_id: str
    subject: str
    attachments: list[ToldAttachment]


_embedded = msgspec.json.Decoder(list[Embedded]).decode


def listed(row: ListedEmail) -> ListItem:
    return ListItem(
        row.id,
        _raw(row.to_list),
        row.sender,
        iso_style(row.created_at),
        row.subject,
        _raw(row.bcc_list),
        _raw(row.cc_list),
        _raw(row.reply_to_list),
        _raw(row.received_for),
        row.message_id,
        [] if row.attachments is None else _embedded(row.attachments),
    )


def email(
    row: StoredEmail,
    parsed: Parsed,
    html: str | None,
    html_format: str,
    raw: tuple[str, datetime] | None,
    parts: list[Part],
) -> Email:
    return Email(
        "email",
        row.id,
        _raw(row.to_list),
        row.sender,
        iso_style(row.created_at),
        row.subject,
        html,
        html_format,
        parsed.text,
        parsed.headers,
        _raw(row.bcc_list),
        _raw(row.cc_list),
        _raw(row.reply_to_list),
        _raw(row.received_for),
        row.message_id,
        None if raw is None else RawLink(raw[0], iso_style(raw[1])),
        [Embedded(p.id, p.filename, p.content_type, p.disposition, p.content_id, p.size) for p in parts],
    )


def attachment(part: Part, url: str, expires_at: datetime) -> dict[str, Any]:
    """In the contract's order (4.1)."""
    shape: dict[str, Any] = {"id": part.id}
    if part.filename is not None:
        shape["filename"] = part.filename
    shape["size"] = part.size
    shape["content_type"] = part.content_type
    shape["content_disposition"] = "inline" if part.inline else "attachment"
    if part.content_id is not None:
        shape["content_id"] = part.content_id
    return {**shape, "download_url": url, "expires_at": iso_style(expires_at)}


def told(row: ToldEmail, parts: list[ToldPart]) -> Told:
    return Told(
        row.id,
        iso_style(row.created_at),
        row.sender,
        _raw(row.to_list),
        _raw(row.bcc_list),
        _raw(row.cc_list),
        _raw(row.received_for),
        row.message_id,
        row.subject,
        [ToldAttachment(p.id, p.filename, p.content_type, p.disposition, p.content_id) for p in parts],
    )


def _raw(text: str | None) -> Raw:
    return NONE if text is None else Raw(text.encode())
