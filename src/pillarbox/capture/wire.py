"""Shapes of captured mail on the wire (an extension of ours)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal
from uuid import UUID

import msgspec
from msgspec import Struct

from pillarbox.capture.message import CapturedMessage, CapturedPart
from pillarbox.capture.queries import CapturedRow
from pillarbox.kernel.wire.instants import DatabaseTime, database_style


class HeaderOut(Struct):
    name: str
    value: str


class AttachmentOut(Struct):
    """`number` is the part's place in the message; `url` takes the same credential as the list."""

    number: int
    filename: str
    content_type: str
    content_disposition: Literal["inline", "attachment"]
    content_id: str | None
    size: int
    url: str


class ShownCapture(Struct):
    """One mail. `to` holds the recipients of the envelope, `from` the From of the header; `inbound` is mail
    that was received."""

    id: UUID
    email_id: UUID
    created_at: DatabaseTime
    from_: str = msgspec.field(name="from")
    to: Sequence[str]
    subject: str
    size: int
    inbound: bool
    html: str | None
    text: str | None
    headers: list[HeaderOut]
    attachments: list[AttachmentOut]


class ClearedCount(Struct, kw_only=True):
    """How many mails were removed."""

    object: Literal["captured"] = "captured"
    deleted: int


def captured(row: CapturedRow, message: CapturedMessage, origin: str) -> ShownCapture:
    return ShownCapture(
        row.id,
        row.email_id,
        database_style(row.at),
        row.sender,
        row.recipients,
        row.subject,
        row.size,
        row.inbound,
        message.html,
        message.text,
        [HeaderOut(header.name, header.value) for header in message.headers],
        [_attachment(row, part, origin) for part in message.parts],
    )


def _attachment(row: CapturedRow, part: CapturedPart, origin: str) -> AttachmentOut:
    return AttachmentOut(
        part.number,
        part.filename,
        part.content_type,
        "inline" if part.inline else "attachment",
        part.cid,
        part.size,
        f"{origin}/capture/{row.id}/parts/{part.number}",
    )
