"""Shapes of messages on the wire (inboxes.md sections 2 and 6); field order is the contract's."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Literal, TypeVar
from uuid import UUID

import msgspec
from msgspec import Struct

from pillarbox.inboxes.messages.queries import StoredMessage
from pillarbox.inboxes.received_mail import MessageBody, MessageFile
from pillarbox.inboxes.threads.wire import NONE, Texts, raw
from pillarbox.kernel.wire.instants import IsoTime, iso_style
from pillarbox.mail.deception.hidden_text import HiddenKind
from pillarbox.mail.deception.phrases import InstructionCode

Direction = Literal["inbound", "outbound"]


class MessageAttachment(Struct, kw_only=True):
    """An attachment as its message shows it."""

    id: UUID
    filename: str | None
    size: int


class Message(Struct, kw_only=True):
    """A message with its bodies. `extracted_text` is an extension: what is new in it, without what it quotes
    and without signature."""

    id: UUID
    direction: Direction
    from_: str = msgspec.field(name="from")
    to: Texts
    cc: Texts
    bcc: Texts
    reply_to: Texts
    subject: str | None
    message_id: str | None
    html: str | None
    text: str | None
    attachments: list[MessageAttachment]
    read: bool
    received_at: IsoTime
    extracted_text: str | None


class InboxesMessagesAttachmentItem(Struct, kw_only=True):
    """An attachment with its link."""

    id: UUID
    filename: str | None
    size: int
    content_type: str
    content_disposition: Literal["inline", "attachment"]
    content_id: str | None
    download_url: str
    expires_at: IsoTime


class InboxesMessagesAttachment(
    InboxesMessagesAttachmentItem, kw_only=True, tag_field="object", tag="attachment"
):
    """One attachment by itself."""


class SafeTextHidden(Struct, kw_only=True):
    """How much of a message is hidden from its readers in one way; the words stay apart."""

    kind: HiddenKind
    characters: int


class SafeTextInstruction(Struct, kw_only=True):
    """A hint that words of a message address a machine."""

    code: InstructionCode
    hidden: bool


class SafeText(Struct, kw_only=True, tag_field="object", tag="safe_text"):
    """The new words of a message as its readers see them, between two fences, for programs."""

    id: UUID
    fence: str
    text: str
    truncated: bool
    hidden: list[SafeTextHidden]
    instructions: list[SafeTextInstruction]


A = TypeVar("A", bound=InboxesMessagesAttachmentItem)


def message(
    row: StoredMessage, body: MessageBody, files: Sequence[MessageFile], extracted_text: str | None
) -> Message:
    return Message(
        id=row.id,
        direction="inbound" if row.is_inbound else "outbound",
        from_=row.sender,
        to=raw(row.to_list),
        cc=raw(row.cc_list),
        bcc=NONE if row.is_inbound else raw(row.bcc_list),
        reply_to=raw(row.reply_to_list) if row.is_inbound else NONE,
        subject=row.subject,
        message_id=row.message_id,
        html=body.html,
        text=body.text,
        attachments=[MessageAttachment(id=file.id, filename=file.filename, size=file.size) for file in files],
        read=row.is_read,
        received_at=iso_style(row.received_at),
        extracted_text=extracted_text,
    )


def attachment(kind: type[A], file: MessageFile, url: str, expires_at: datetime) -> A:
    """Return the attachment in the shape of a list's item, or of a single one."""
    return kind(
        id=file.id,
        filename=file.filename,
        size=file.size,
        content_type=file.content_type,
        content_disposition="inline" if file.disposition == "inline" else "attachment",
        content_id=file.content_id,
        download_url=url,
        expires_at=iso_style(expires_at),
    )
