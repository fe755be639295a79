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
from pillarbox.kernel.wire.shapes import from_row


class HeaderOut(Struct, kw_only=True):
    name: str
    value: str


class AttachmentOut(Struct, kw_only=True):
    """`number` is the part's place in the message; `url` takes the same credential as the list."""

    number: int
    filename: str
    content_type: str
    content_disposition: Literal["inline", "attachment"]
    content_id: str | None
    size: int
    url: str


class ShownCapture(Struct, kw_only=True):
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
    return from_row(
        ShownCapture,
        row,
        created_at=database_style(row.at),
        from_=row.sender,
        to=row.recipients,
        html=message.html,
        text=message.text,
        headers=[HeaderOut(name=header.name, value=header.value) for header in message.headers],
        attachments=[_attachment(row, part, origin) for part in message.parts],
    )


def _attachment(row: CapturedRow, part: CapturedPart, origin: str) -> AttachmentOut:
    return AttachmentOut(
        number=part.number,
        filename=part.filename,
        content_type=part.content_type,
        content_disposition="inline" if part.inline else "attachment",
        content_id=part.cid,
        size=part.size,
        url=f"{origin}/capture/{row.id}/parts/{part.number}",
    )
