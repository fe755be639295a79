"""Shapes of previews (broadcasts.md section 10); field order is the contract's."""

from __future__ import annotations

from typing import Annotated, Literal
from uuid import UUID

import msgspec
from msgspec import Meta, Struct

from pillarbox.broadcasts.preview.composing import Preview
from pillarbox.kernel.wire.email_address import EmailAddress, NotAnAddress, email_address
from pillarbox.kernel.wire.problems import InvalidField

Address = Annotated[str, Meta(min_length=1, max_length=320)]


class PreviewBroadcast(Struct, kw_only=True):
    """For whom it is composed, and to whom a test copy is sent, if to anybody."""

    contact: Address
    send_to: Address | None = None


class ShownPreview(Struct, kw_only=True):
    object: Literal["broadcast_preview"]
    broadcast_id: UUID
    contact_id: UUID
    from_: str = msgspec.field(name="from")
    to: str
    reply_to: list[str] | None
    subject: str
    html: str | None
    text: str | None
    message: str
    email_id: UUID | None


def address_in(field: str, text: str) -> EmailAddress:
    """Return the address that a field has, or raise a 422."""
    try:
        return email_address(text)
    except NotAnAddress as wrong:
        raise InvalidField(field, wrong.reason) from None


def shown(broadcast_id: UUID, sender: str, preview: Preview, email_id: UUID | None) -> ShownPreview:
    """Return the preview, and the email that is its test copy."""
    email = preview.email
    return ShownPreview(
        object="broadcast_preview",
        broadcast_id=broadcast_id,
        contact_id=preview.contact_id,
        from_=sender,
        to=email.to[0].addr_spec,
        reply_to=[one.addr_spec for one in email.reply_to] or None,
        subject=email.subject,
        html=preview.bodies.html,
        text=preview.bodies.text,
        message=message_text(preview.message),
        email_id=email_id,
    )


def message_text(message: bytes) -> str:
    """Return a message as text: all of it is ASCII, or UTF-8 where its addresses are."""
    return message.decode(errors="replace")
