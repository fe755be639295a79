"""Shapes of replies and forwards on the wire (inboxes.md 6.2 and 6.3)."""

from __future__ import annotations

from typing import Annotated, ClassVar

import msgspec
from msgspec import Meta

from pillarbox.emails.requests import attachment_input
from pillarbox.emails.requests.parse import MOST_BODY, MOST_HEADERS, MOST_SUBJECT
from pillarbox.emails.wire import AttachmentIn
from pillarbox.inboxes.sending.recipients import MOST
from pillarbox.mail.message.headers import LONGEST_VALUE

Addresses = str | Annotated[list[str], Meta(max_length=MOST)]


class ReplyIn(msgspec.Struct, kw_only=True):
    """At least one of `html` and `text`. `headers` may not have those that the service sets."""

    min_properties: ClassVar[int] = 1

    html: Annotated[str, Meta(max_length=MOST_BODY)] | None = None
    text: Annotated[str, Meta(max_length=MOST_BODY)] | None = None
    cc: Addresses | None = None
    bcc: Addresses | None = None
    subject: Annotated[str, Meta(max_length=MOST_SUBJECT)] | None = None
    reply_all: bool | None = None
    allow_automatic: bool | None = None
    headers: (
        Annotated[dict[str, Annotated[str, Meta(max_length=LONGEST_VALUE)]], Meta(max_length=MOST_HEADERS)]
        | None
    ) = None
    attachments: Annotated[list[AttachmentIn], Meta(max_length=attachment_input.MOST)] | None = None


class ForwardIn(msgspec.Struct, kw_only=True):
    """`html` and `text` are a note above the original."""

    to: Annotated[str, Meta(min_length=1)] | Annotated[list[str], Meta(min_length=1, max_length=MOST)]
    cc: Addresses | None = None
    bcc: Addresses | None = None
    subject: Annotated[str, Meta(max_length=MOST_SUBJECT)] | None = None
    html: Annotated[str, Meta(max_length=MOST_BODY)] | None = None
    text: Annotated[str, Meta(max_length=MOST_BODY)] | None = None
    headers: (
        Annotated[dict[str, Annotated[str, Meta(max_length=LONGEST_VALUE)]], Meta(max_length=MOST_HEADERS)]
        | None
    ) = None
    attachments: Annotated[list[AttachmentIn], Meta(max_length=attachment_input.MOST)] | None = None
