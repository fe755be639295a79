"""An email that passed its checks and is not stored yet: values only."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from msgspec import Struct

from pillarbox.mail.message.address import Mailbox


class Recipient(NamedTuple):
    """One address that gets the mail, in the role that won (to over cc over bcc); `key` is the form that is
    compared, `addr_spec` the one that the envelope carries."""

    role: str
    mailbox: Mailbox
    key: str
    addr_spec: str


class NewAttachment(NamedTuple):
    """An attachment as accepted: `data`, or `url` to be fetched after the answer."""

    filename: str
    content_type: str
    cid: str | None
    data: bytes | None
    url: str | None


class Tag(NamedTuple):
    name: str
    value: str


class Outgoing(Struct, frozen=True, kw_only=True):
    """One email as the sender wants it: every field parsed, no look-up made yet.

    The `*_texts` are shown as they were given; the mailboxes are what goes on the wire.
    """

    sender_text: str
    sender: Mailbox
    to_texts: Sequence[str]
    to: Sequence[Mailbox]
    cc_texts: Sequence[str]
    cc: Sequence[Mailbox]
    bcc_texts: Sequence[str]
    bcc: Sequence[Mailbox]
    reply_to_texts: Sequence[str]
    reply_to: Sequence[Mailbox]
    subject: str
    html: str | None
    text: str | None
    headers: Sequence[tuple[str, str]]
    attachments: Sequence[NewAttachment]
    tags: Sequence[Tag]
    scheduled_at: datetime | None
    topic_id: UUID | None = None
    template: str | None = None

    def recipients(self) -> list[Recipient]:
        """Everybody who gets the mail, once (emails.md 1.1)."""
        seen: set[str] = set()
        found = []
        for role, mailboxes in (("to", self.to), ("cc", self.cc), ("bcc", self.bcc)):
            for mailbox in mailboxes:
                address = mailbox.addr_spec
                key = address.lower() if address.isascii() else mailbox.key
                if key not in seen:
                    seen.add(key)
                    found.append(Recipient(role, mailbox, key, address))
        return found
